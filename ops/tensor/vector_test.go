package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"peermesh/ops/tensor/internal/simd"
)

// none leaves a column with its portable kernels.
var none simd.Kernels

var portable = [...]column{
	Float32:  floats[float32, float32](none),
	Float64:  floats[float64, float64](none),
	Int32:    integers[int32, int64](none),
	Int64:    integers[int64, int64](none),
	Uint8:    integers[uint8, uint64](none),
	Float16:  floats[F16, float32](none),
	BFloat16: floats[BF16, float32](none),
	Int8:     integers[int8, int64](none),
	Int16:    integers[int16, int64](none),
	Uint16:   integers[uint16, uint64](none),
	Uint32:   integers[uint32, uint64](none),
	Uint64:   integers[uint64, uint64](none),
	Bool:     bools(none),
}

// A twin is a reduction with both its kernels: what the table has for it, which
// is the processor's where there is one, and the portable one.
type twin struct {
	t            DType
	op           OpCode
	fast, steady kernel
}

func (w twin) String() string { return fmt.Sprintf("%v/%v", w.t, w.op) }

// twins are all reductions but those that fold as Sum does.
func twins() []twin {
	var all []twin
	for t := range portable {
		for i, steady := range portable[t].fold {
			if op := OpCode(i); steady != nil && op != opAvg && op != opPremulSum {
				all = append(all, twin{DType(t), op, dtypes[t].fold[op], steady})
			}
		}
	}
	return all
}

// formats are the widths of sign, exponent and fraction.
var formats = map[DType][3]int{Float16: {1, 5, 10}, BFloat16: {1, 8, 7}, Float32: {1, 8, 23}, Float64: {1, 11, 52}}

// isNaN reports whether the bits of an element are a NaN's.
func isNaN(t DType, bits uint64) bool {
	f, ok := formats[t]
	infinity := uint64(1<<f[1]-1) << f[2]
	return ok && bits&(1<<(f[1]+f[2])-1) > infinity
}

// bits is the element at the start of p, zero-extended.
func bits(t DType, p []byte) uint64 {
	var b [8]byte
	copy(b[:], p[:t.Size()])
	return binary.LittleEndian.Uint64(b[:])
}

// scribble fills p with elements, half of them any bits and the others with an
// exponent of all ones or all zeros: infinities, NaNs of both kinds, subnormals
// and zeros, of either sign.
func scribble(p []byte, t DType, r *rand.Rand) {
	var b [8]byte
	f := formats[t]
	for i := 0; i < len(p); i += t.Size() {
		x := r.Uint64()
		exponent, fraction := uint64(1<<f[1]-1)<<f[2], uint64(1<<f[2]-1)
		switch r.IntN(8) {
		case 0:
			x |= exponent
		case 1:
			x &^= exponent
		case 2:
			x = x&^fraction | exponent
		case 3:
			x &^= fraction | exponent
		}
		binary.LittleEndian.PutUint64(b[:], x)
		copy(p[i:i+t.Size()], b[:])
	}
}

// same compares the kernels' results, d op s, bit by bit. Only of two NaNs may
// either be the one that remains, if it is quiet.
func (w twin) same(fast, steady, d, s []byte) error {
	if bytes.Equal(fast, steady) {
		return nil
	}
	for i := 0; i < len(d); i += w.t.Size() {
		x, y, a, b := bits(w.t, fast[i:]), bits(w.t, steady[i:]), bits(w.t, d[i:]), bits(w.t, s[i:])
		quiet := uint64(1) << max(formats[w.t][2]-1, 0)
		either := isNaN(w.t, a) && isNaN(w.t, b) && (x == a|quiet || x == b|quiet)
		if x != y && !either {
			return fmt.Errorf("%v of %#x and %#x, element %d: %#x, portable %#x", w, a, b, i/w.t.Size(), x, y)
		}
	}
	return nil
}

// try has both kernels fold s into d, at those distances from an aligned address,
// and looks at what is left and right of it.
func (w twin) try(d, s []byte, dstAt, srcAt int) error {
	const margin = 32
	fast := Host(newHost(int64(dstAt + len(d) + margin)))
	src := newHost(int64(srcAt + len(s)))[srcAt:]
	copy(fast[dstAt:], d)
	copy(src, s)
	steady := bytes.Clone(fast)
	w.fast(fast[dstAt:][:len(d)], src)
	w.steady(steady[dstAt:][:len(d)], src)
	if !bytes.Equal(fast[:dstAt], steady[:dstAt]) || !bytes.Equal(fast[dstAt+len(d):], steady[dstAt+len(d):]) {
		return fmt.Errorf("%v of %d bytes, %d and %d off, wrote beside them", w, len(d), dstAt, srcAt)
	}
	if err := w.same(fast[dstAt:], steady[dstAt:], d, s); err != nil {
		return fmt.Errorf("%d bytes, %d and %d off: %w", len(d), dstAt, srcAt, err)
	}
	return nil
}

// TestVectorKernels holds every kernel to its portable twin, for all lengths that
// reach each part of its loop, and all misalignments.
func TestVectorKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for _, w := range twins() {
		pool := make([]byte, 4096*w.t.Size())
		scribble(pool, w.t, r)
		draw := func(n int) []byte { return pool[r.IntN(len(pool)/w.t.Size()-n)*w.t.Size():][:n*w.t.Size()] }
		for n := range 131 {
			for at := range 8 {
				if err := w.try(draw(n), draw(n), at, (5*n+3*at)%8); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestVectorHalves takes every pattern of 16 bits, with others drawn at random.
func TestVectorHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	all, other := make([]byte, 2<<16), make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
	}
	for _, w := range twins() {
		if w.t != Float16 && w.t != BFloat16 {
			continue
		}
		for range 2 {
			scribble(other, w.t, r)
			if err := w.try(all, other, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVectorSteps does the same for scale and divide, by operands that an element
// type has and by such that only its wider type of computation has.
func TestVectorSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for dt, steady := range portable {
		dt, fast := DType(dt), dtypes[dt].column
		if steady.scale == nil {
			continue
		}
		for n := range 66 {
			for i, by := range []int{1, 3, 127, 257, 2049, 1 << 20} {
				d := make([]byte, (n+7*by%600)*dt.Size()) // some of them of several runs
				scribble(d, dt, r)
				p, q := bytes.Clone(d), bytes.Clone(d)
				fast.divide(p, by)
				steady.divide(q, by)
				if err := (twin{t: dt}).same(p, q, d, d); err != nil {
					t.Fatalf("divided by %d: %v", by, err)
				}
				factor := []float64{1. / 3, -.25, math.NaN(), math.Copysign(0, -1), math.Inf(1), 1e-40}[i]
				if !fast.holds(factor) {
					factor = float64(by % 128)
				}
				fast.scale(p, factor)
				steady.scale(q, factor)
				if err := (twin{t: dt}).same(p, q, d, d); err != nil {
					t.Fatalf("scaled by %v: %v", factor, err)
				}
			}
		}
	}
}

func TestVectorStepsDoNotAllocate(t *testing.T) {
	p := make([]byte, 4000)
	for _, c := range dtypes {
		if c.scale != nil {
			if n := testing.AllocsPerRun(10, func() { c.scale(p, 1); c.divide(p, 3) }); n != 0 {
				t.Errorf("%s: %v allocations", c.name, n)
			}
		}
	}
}

// TestNaNRules pins what both kernels do with a NaN: it wins, and is quiet after
// arithmetic. Min and Max of floats that are computed as they are keep it as it is.
func TestNaNRules(t *testing.T) {
	const signaling, quiet, one = 0x7f800001, 0x7fc00001, 0x3f800000
	for _, w := range twins() {
		if w.t != Float32 {
			continue
		}
		for _, k := range []kernel{w.fast, w.steady} {
			p, q := make([]byte, 64), make([]byte, 64)
			for i := 0; i < 64; i += 4 {
				binary.LittleEndian.PutUint32(p[i:], signaling)
				binary.LittleEndian.PutUint32(q[i:], one)
			}
			k(p, q)
			got := bits(w.t, p)
			if w.op != opMin && w.op != opMax && got != quiet {
				t.Errorf("%v of a NaN: %#x, want %#x", w, got, quiet)
			}
			if !isNaN(w.t, got) {
				t.Errorf("%v of a NaN: %#x", w, got)
			}
		}
	}
}

func FuzzVectorKernels(f *testing.F) {
	all := twins()
	r := rand.New(rand.NewPCG(4, 4))
	for i, w := range all {
		data := make([]byte, 2*37*w.t.Size())
		scribble(data, w.t, r)
		f.Add(data, byte(i), byte(r.IntN(64)))
	}
	f.Fuzz(func(t *testing.T, data []byte, i, at byte) {
		w := all[int(i)%len(all)]
		n := len(data) / 2 / w.t.Size() * w.t.Size()
		if err := w.try(data[:n], data[n:2*n], int(at%8), int(at/8%8)); err != nil {
			t.Fatal(err)
		}
	})
}

// ordinary fills p with elements that are no special case: floats of magnitudes
// from 1 to 2.
func ordinary(p []byte, t DType, r *rand.Rand) []byte {
	var b [8]byte
	f := formats[t]
	for i := 0; i < len(p); i += t.Size() {
		exponent, one := uint64(1<<f[1]-1)<<f[2], uint64(1<<f[1]>>1-min(1, f[1]))<<f[2]
		binary.LittleEndian.PutUint64(b[:], r.Uint64()&^exponent|one)
		copy(p[i:i+t.Size()], b[:])
	}
	return p
}

// BenchmarkVector folds a message with either kernel in turn and reports the
// median rate of each, and how many times faster the processor's is. The message
// begins as many bytes off alignment as the name says.
func BenchmarkVector(b *testing.B) {
	for _, w := range twins() {
		for _, size := range []int{64 << 10, 1 << 20, 64 << 20} {
			for shift := range 2 {
				b.Run(fmt.Sprintf("%v/%dKiB/shift=%d", w, size>>10, shift), func(b *testing.B) {
					r := rand.New(rand.NewPCG(4, 5))
					src := ordinary(newHost(int64(size + shift))[shift:], w.t, r)
					w.race(b, src)
				})
			}
		}
	}
}

func (w twin) race(b *testing.B, src []byte) {
	dst := newHost(int64(len(src)))
	var took [2][]time.Duration
	for b.Loop() {
		for i, k := range []kernel{w.fast, w.steady} {
			copy(dst, src)
			start := time.Now()
			k(dst, src)
			took[i] = append(took[i], time.Since(start))
		}
	}
	var rate [2]float64
	for i := range took {
		slices.Sort(took[i])
		rate[i] = float64(len(src)) / float64(took[i][len(took[i])/2])
	}
	b.ReportMetric(rate[0], "GB/s")
	b.ReportMetric(rate[1], "GB/s-portable")
	b.ReportMetric(rate[0]/rate[1], "times")
	b.ReportMetric(0, "ns/op")
}
