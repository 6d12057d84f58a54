package tensor_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// maxRun is the longest message of the exhaustive tests in elements: beyond two
// widths of the widest vector register, so that a kernel's body and tail are
// both reached at every remainder.
const maxRun = 67

// TestReduceAtEverywhere compares the kernels with the reference for every
// reduction, element type, length up to maxRun and misalignment of memory and
// message; each pair of misalignments sees every third length.
func TestReduceAtEverywhere(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		for _, op := range tensortest.Ops(dt) {
			r, ways := newSource(dt), dt.Size()*dt.Size()
			for at := range ways {
				for n := at % 3; n <= maxRun; n += min(3, ways) {
					r.compare(t, op, at/dt.Size(), at%dt.Size(), n)
				}
			}
		}
	}
}

// TestReduceAtLong crosses the blocks in which unaligned bytes are staged.
func TestReduceAtLong(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		for _, op := range tensortest.Ops(dt) {
			r := newSource(dt)
			for _, n := range []int{255, 256, 257, 513, 1000} {
				for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {3, 3}, {4, 4}} {
					r.compare(t, op, at[0], at[1], n)
				}
			}
		}
	}
}

// A source has elements to draw runs from, which is faster than to make them.
type source struct {
	dtype    tensor.DType
	elements []byte
	rand     *rand.Rand
}

func newSource(t tensor.DType) source {
	r := rand.New(rand.NewPCG(1, uint64(t)))
	s := source{t, make([]byte, 8192*t.Size()), r}
	tensortest.Fill(s.elements, t, r)
	return s
}

// draw fills p with consecutive elements from anywhere.
func (s source) draw(p []byte) {
	last := (len(s.elements) - len(p)) / s.dtype.Size()
	copy(p, s.elements[s.rand.IntN(last+1)*s.dtype.Size():])
}

// compare folds n elements into n others, the memory and the message beginning
// as many bytes off alignment as given, and looks for writes astray.
func (s source) compare(t *testing.T, op tensor.Op, memoryAt, messageAt, n int) {
	t.Helper()
	const margin = 8
	size := n * s.dtype.Size()
	whole, p := aligned(memoryAt, margin+size+margin), aligned(messageAt, size)
	s.draw(whole[margin : margin+size])
	s.draw(p)
	got, want := whole[margin:margin+size], bytes.Clone(whole[margin:margin+size])
	tensortest.Reduce(want, p, s.dtype, op)
	if err := tensor.Host(got).ReduceAt(p, 0, s.dtype, op); err != nil {
		t.Fatal(err)
	}
	if !tensortest.Equal(got, want, s.dtype) {
		t.Fatalf("%v %v of %d elements, %d and %d off:\n got %x\nwant %x", s.dtype, op, n, memoryAt, messageAt, got, want)
	}
	if astray := string(whole[:margin]) + string(whole[margin+size:]); astray != string(make([]byte, 2*margin)) {
		t.Fatalf("%v %v of %d elements wrote beside them: %x", s.dtype, op, n, astray)
	}
}

// aligned is n bytes that begin shift bytes past a multiple of 64.
func aligned(shift, n int) []byte {
	p, _ := tensor.New(tensor.Uint8, shift+n).View(int64(shift), int64(n))
	return p
}

// FuzzReduceAt lets the fuzzer choose the bits: message and memory are the
// halves of data.
func FuzzReduceAt(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, dt := range tensortest.DTypes() {
		for _, op := range tensortest.Ops(dt) {
			data := make([]byte, 2*maxRun*dt.Size())
			tensortest.Fill(data, dt, r)
			f.Add(data, byte(dt), byte(op.Code()), byte(r.IntN(64)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, dt, op, at byte) {
		d := tensor.DType(dt)
		if !d.Valid() {
			if err := tensor.Host(data).ReduceAt(data, 0, d, tensor.Sum); err == nil {
				t.Fatalf("%v: no error", d)
			}
			return
		}
		all := tensortest.Ops(d)
		o := all[int(op)%len(all)]
		half := len(data) / 2 / d.Size() * d.Size()
		got, p := aligned(int(at%8), half), aligned(int(at/8%8), half)
		copy(got, data)
		copy(p, data[half:])
		want := bytes.Clone(got)
		tensortest.Reduce(want, p, d, o)
		if err := tensor.Host(got).ReduceAt(p, 0, d, o); err != nil {
			t.Fatal(err)
		}
		if !tensortest.Equal(got, want, d) {
			t.Fatalf("%v %v of %x: %x, want %x", d, o, p, got, want)
		}
	})
}

// TestReduceAtItself folds a memory into itself, in place and staged: each
// element is read before it is written.
func TestReduceAtItself(t *testing.T) {
	for shift := range 2 {
		p := aligned(shift, 8*600)
		h := tensor.Host(p)
		want := make([]byte, len(p))
		for i := range p {
			p[i] = byte(i % 8 % 2) // each int64 is 0x0100010001000100
			want[i] = 2 * p[i]
		}
		if err := h.ReduceAt(p, 0, tensor.Int64, tensor.Sum); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p, want) {
			t.Errorf("%d off: %x, want %x", shift, p[:16], want[:16])
		}
	}
}

// TestCommutes checks what replicas rely on: op(a, b) has the bits of op(b, a).
func TestCommutes(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, op := range tensortest.Ops(tensor.Float64) {
		for _, v := range [][2]float64{{0, negative}, {1, -1}, {.1, .2}, {math.Inf(1), -3}, {math.MaxFloat64, math.MaxFloat64}} {
			a, b := tensor.Of([]float64{v[0]}), tensor.Of([]float64{v[1]})
			p, q := make([]byte, 8), make([]byte, 8)
			read(t, a, p)
			read(t, b, q)
			if err := a.ReduceAt(q, 0, op); err != nil {
				t.Fatal(err)
			}
			if err := b.ReduceAt(p, 0, op); err != nil {
				t.Fatal(err)
			}
			x, _ := tensor.Data[float64](a)
			y, _ := tensor.Data[float64](b)
			if math.Float64bits(x[0]) != math.Float64bits(y[0]) {
				t.Errorf("%v of %v: %v one way, %v the other", op, v, x[0], y[0])
			}
		}
	}
}

func TestReduceAtDoesNotAllocate(t *testing.T) {
	for shift := range 2 {
		h, p := tensor.Host(aligned(shift, 4096)), aligned(1, 4096)
		if n := testing.AllocsPerRun(10, func() {
			if err := h.ReduceAt(p, 0, tensor.Float32, tensor.Sum); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%d off: %v allocations", shift, n)
		}
	}
}

func read(t *testing.T, x tensor.Tensor, p []byte) {
	t.Helper()
	if _, err := x.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
}
