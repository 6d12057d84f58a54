package blocks

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// What the kernels are to do, for each element by itself.

func magnitude(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) }

func nearest(v, inverse float32) byte {
	return byte(math.Float32bits(float32(v*inverse) + 3<<22))
}

func product(b byte, unit float32) float32 { return float32(int8(b)) * unit }

// same is equal bits: there is one NaN at most in each operation.
func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// awkward are numbers at which a careless kernel differs.
var awkward = []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, 1.5, 2.5, 126.5, 127, -127, math.SmallestNonzeroFloat32, -1e-41,
	math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.Float32frombits(0xffc0_1234), math.Float32frombits(0x7f80_0042)}

// some are n numbers of up to most in magnitude, with awkward ones among them if they may be.
func some(r *rand.Rand, n int, most float64, mixed bool) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32((2*r.Float64() - 1) * most)
		if mixed && r.IntN(8) == 0 {
			s[i] = awkward[r.IntN(len(awkward))]
		}
	}
	return s
}

// units are what integers are multiplied by, with what a stranger may send.
var units = append([]float32{1, 1. / 127, 3e-5, 0x1p-125, 1e38, -2}, awkward...)

// lengths of what is given; what is returned is the whole Lanes of it.
var lengths = []int{0, 1, 31, 32, 33, 63, 64, 96, 256, 257, 1000}

// took wants a kernel to have taken what it should of n elements.
func took(t *testing.T, done, n int) {
	t.Helper()
	if want := n / Lanes * Lanes; available && done != want || !available && done != 0 {
		t.Fatalf("%d of %d elements are done", done, n)
	}
}

const kept = 0xa5 // what is in bytes that are not to be written

func TestGreatest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range lengths {
		for k := range 70 {
			x := some(r, n+1, 1e30, k%2 == 1)[1:]
			if n > 0 {
				x[r.IntN(n)] = -1e32 // wherever it is
			}
			got, done := Greatest(x)
			took(t, done, n)
			want := uint32(0)
			for _, v := range x[:done] {
				want = max(want, magnitude(v))
			}
			if got != want {
				t.Fatalf("of %d elements %x, want %x", n, got, want)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		for at := range 4 { // no address is a multiple of anything
			for _, inverse := range []float32{1, 0, 0.3} {
				x := some(r, n+at, 127, true)[at:]
				q := bytes.Repeat([]byte{kept}, n+at+Lanes)[at:]
				done := EncodeInt8(q[:n], x, inverse)
				took(t, done, n)
				for i, got := range q {
					if i < done && got != nearest(x[i], inverse) || i >= done && got != kept {
						t.Fatalf("int8: byte %d of %d, %d of them done, is %x", i, n, done, got)
					}
				}
				q = bytes.Repeat([]byte{kept}, n+at+Lanes)[at:]
				done = EncodeInt4(q[:(n+1)/2], x, inverse/18)
				took(t, done, n)
				for i, got := range q {
					want := byte(kept)
					if i < done/2 {
						want = nearest(x[2*i], inverse/18)&15 | nearest(x[2*i+1], inverse/18)<<4
					}
					if got != want {
						t.Fatalf("int4: byte %d of %d elements is %x, want %x", i, n, got, want)
					}
				}
			}
		}
	}
}

func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, n := range lengths {
		for k, unit := range units {
			q := make([]byte, n+k)
			for i := range q {
				q[i] = byte(r.Uint32())
			}
			q = q[k:]
			x := some(r, n+k%8, 1, false)[k%8:]
			was := append([]float32(nil), x...)
			done := DecodeInt8(x, q, unit)
			took(t, done, n)
			for i, got := range x {
				if want := product(q[i], unit); i < done && !same(got, want) || i >= done && got != was[i] {
					t.Fatalf("int8: element %d of %d is %v, byte %x of %v", i, n, got, q[i], unit)
				}
			}
			copy(x, was)
			done = DecodeInt4(x, q[:(n+1)/2], unit)
			took(t, done, n)
			for i, got := range x {
				if want := product(q[i/2]>>(i%2*4)<<4, 1) / 16 * unit; i < done && !same(got, want) || i >= done && got != was[i] {
					t.Fatalf("int4: element %d of %d is %v, want %v of byte %x", i, n, got, want, q[i/2])
				}
			}
		}
	}
}

// A slice that is too short panics before anything is read or written beyond it.
func TestShort(t *testing.T) {
	if !available {
		t.Skip("no kernels for this processor and build")
	}
	x := make([]float32, 64)
	for k, f := range []func(q []byte){
		func(q []byte) { EncodeInt8(q[:63:63], x, 1) },
		func(q []byte) { DecodeInt8(x, q[:63:63], 1) },
		func(q []byte) { EncodeInt4(q[:31:31], x, 1) },
		func(q []byte) { DecodeInt4(x, q[:31:31], 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("case %d: too few bytes are taken", k)
				}
			}()
			f(make([]byte, 64))
		}()
	}
}

func BenchmarkKernels(b *testing.B) {
	const n = 256 // a block
	x, q := some(rand.New(rand.NewPCG(1, 4)), n, 127, false), make([]byte, n)
	for name, f := range map[string]func(){
		"greatest":    func() { Greatest(x) },
		"encode int8": func() { EncodeInt8(q, x, 1) },
		"decode int8": func() { DecodeInt8(x, q, 1) },
		"encode int4": func() { EncodeInt4(q, x, 1) },
		"decode int4": func() { DecodeInt4(x, q, 1) },
	} {
		b.Run(fmt.Sprint(name, " of ", n), func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
}
