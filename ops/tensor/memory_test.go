package tensor_test

import (
	"errors"
	"math"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

func TestHost(t *testing.T) {
	tensortest.TestMemory(t, func(n int) tensor.Memory { return tensor.New(tensor.Uint8, n).Memory() })
}

// opaque is a memory that lends nothing, as a GPU's.
type opaque struct{ tensor.Memory }

func TestOpaque(t *testing.T) {
	tensortest.TestMemory(t, func(n int) tensor.Memory { return opaque{make(tensor.Host, n)} })
}

// TestRangeError checks that callers find out which range it was.
func TestRangeError(t *testing.T) {
	h := make(tensor.Host, 16)
	p := make([]byte, 16)
	_, errRead := h.ReadAt(p, 8)
	_, errWrite := h.WriteAt(p, 8)
	for name, err := range map[string]error{
		"ReadAt": errRead, "WriteAt": errWrite, "ReduceAt": h.ReduceAt(p, 8, tensor.Float64, tensor.Max),
	} {
		var out *tensor.RangeError
		if !errors.As(err, &out) || *out != (tensor.RangeError{Off: 8, N: 16, Size: 16}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const want = "tensor: 16 bytes at 8 are out of range of 16 bytes"
	if errRead.Error() != want {
		t.Errorf("%q, want %q", errRead, want)
	}
}

func TestHostEmpty(t *testing.T) {
	var h tensor.Host
	if n, err := h.ReadAt(nil, 0); n != 0 || err != nil {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
	if err := h.ReduceAt(nil, 0, tensor.Uint8, tensor.Sum); err != nil {
		t.Error(err)
	}
	if p := h.View(0, math.MaxInt64); p != nil {
		t.Errorf("View: %d bytes", len(p))
	}
}

// TestHostOverlap writes a memory's bytes to other bytes of the same memory, in
// both directions.
func TestHostOverlap(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		want     string
	}{{0, 2, "ababcdgh"}, {2, 0, "cdefefgh"}} {
		h := tensor.Host("abcdefgh")
		if _, err := h.WriteAt(h.View(c.from, 4), c.to); err != nil {
			t.Fatal(err)
		}
		if string(h) != c.want {
			t.Errorf("%d to %d: %s, want %s", c.from, c.to, h, c.want)
		}
	}
}
