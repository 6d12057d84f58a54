package tensor_test

import (
	"bytes"
	"slices"
	"testing"

	"peermesh/ops/tensor"
)

// dirty is n bytes of which many are no bools, with what they stand for.
func dirty(n int) (p, want []byte) {
	p, want = make([]byte, n), make([]byte, n)
	for i := range p {
		p[i] = byte(i * 37)
		if p[i] != 0 {
			want[i] = 1
		}
	}
	return p, want
}

// TestWriteBools writes bytes from the network to bools, at every alignment and
// length, and looks for writes astray.
func TestWriteBools(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 16, 17, 255, 256, 3000} {
		for at := range 9 {
			p, want := dirty(n + 1)
			p, want = p[1:], want[1:]
			sent := bytes.Clone(p)
			x := make([]bool, at+n+1)
			if k, err := tensor.Of(x).WriteAt(p, int64(at)); k != n || err != nil {
				t.Fatalf("%d, %v", k, err)
			}
			got, _ := tensor.Of(x).View(0, int64(len(x)))
			if !bytes.Equal(got[at:at+n], want) || slices.Contains(got[:at], 1) || got[at+n] != 0 {
				t.Errorf("%d bytes at %d: %v, want %v", n, at, got, want)
			}
			if !bytes.Equal(p, sent) {
				t.Errorf("%d bytes at %d: the message was changed", n, at)
			}
		}
	}
}

// TestWriteBoolsLong is more than is staged at a time, to a memory that lends
// nothing.
func TestWriteBoolsLong(t *testing.T) {
	p, want := dirty(2<<20 + 5)
	h := make(tensor.Host, len(p))
	if n, err := tensor.In(opaque{h}, tensor.Bool, len(p)).WriteAt(p, 0); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	if !bytes.Equal(h, want) {
		t.Error("what was written is not normalised")
	}
	short := tensor.In(opaque{make(tensor.Host, 100)}, tensor.Bool, len(p))
	if n, err := short.WriteAt(p, 0); n != 0 || err == nil {
		t.Errorf("wrote %d bytes to a memory of 100: %v", n, err)
	}
}

// TestDataOfBools gives no slice in which a bool is neither true nor false.
func TestDataOfBools(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 64, 100} {
		h := make(tensor.Host, n)
		x := tensor.In(h, tensor.Bool, n)
		h[n/2] = 1
		if v, ok := tensor.Data[bool](x); !ok || !v[n/2] {
			t.Errorf("%v, %v", v, ok)
		}
		for i := range h {
			old := h[i]
			for _, b := range []byte{2, 3, 128, 255} {
				h[i] = b
				if v, ok := tensor.Data[bool](x); ok {
					t.Errorf("a byte %d became the bool %v", b, v[i])
				}
			}
			h[i] = old
		}
	}
}

func TestCopyBools(t *testing.T) {
	p, want := dirty(100)
	for name, src := range map[string]tensor.Tensor{
		"host": tensor.In(tensor.Host(p), tensor.Bool, 100), "device": tensor.In(opaque{tensor.Host(p)}, tensor.Bool, 100),
	} {
		for _, dst := range []tensor.Tensor{tensor.New(tensor.Bool, 100), hidden(tensor.New(tensor.Bool, 100))} {
			got := make([]byte, 100)
			if err := tensor.Copy(dst, src); err != nil {
				t.Fatal(err)
			}
			if read(t, dst, got); !bytes.Equal(got, want) {
				t.Errorf("from %s: %v", name, got)
			}
		}
	}
}

// TestBoolsFold pins the truth tables, of all bytes that a message may hold.
func TestBoolsFold(t *testing.T) {
	for op, want := range map[tensor.Op]func(a, b bool) bool{
		tensor.Sum:     func(a, b bool) bool { return a || b },
		tensor.Max:     func(a, b bool) bool { return a || b },
		tensor.BitOr:   func(a, b bool) bool { return a || b },
		tensor.Product: func(a, b bool) bool { return a && b },
		tensor.Min:     func(a, b bool) bool { return a && b },
		tensor.BitAnd:  func(a, b bool) bool { return a && b },
		tensor.BitXor:  func(a, b bool) bool { return a != b },
	} {
		for a := range 256 {
			message, memory := make([]byte, 256), make(tensor.Host, 256)
			for b := range message {
				message[b], memory[b] = byte(b), byte(a)
			}
			if err := memory.ReduceAt(message, 0, tensor.Bool, op); err != nil {
				t.Fatal(err)
			}
			for b, got := range memory {
				if got != byteOf(want(a != 0, b != 0)) {
					t.Fatalf("%d %v %d = %d", a, op, b, got)
				}
			}
		}
	}
}
