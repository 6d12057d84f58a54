package tensor_test

import (
	"slices"
	"testing"

	"peermesh/ops/tensor"
)

// hidden is the tensor in a memory that does not lend its bytes.
func hidden(x tensor.Tensor) tensor.Tensor {
	return tensor.In(opaque{x.Memory()}, x.DType(), x.Shape()...)
}

// TestCopy goes through every pair of memories that do and do not lend, with
// more bytes than are staged at a time.
func TestCopy(t *testing.T) {
	const n = 300_000
	for _, c := range []struct {
		name             string
		hideDst, hideSrc bool
	}{{"host to host", false, false}, {"host to device", true, false}, {"device to host", false, true}, {"device to device", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i] = float64(i)
			}
			dst, src := tensor.Of(y), tensor.Of(x)
			if c.hideDst {
				dst = hidden(dst)
			}
			if c.hideSrc {
				src = hidden(src)
			}
			if err := tensor.Copy(dst, src); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(x, y) {
				t.Error("the copy differs")
			}
		})
	}
}

func TestCopyShapes(t *testing.T) {
	a, b := tensor.New(tensor.Int32, 2, 3), tensor.Of([]int32{1, 2, 3, 4, 5, 6})
	if err := tensor.Copy(a, b); err != nil {
		t.Fatal(err)
	}
	if x, _ := tensor.Data[int32](a); !slices.Equal(x, []int32{1, 2, 3, 4, 5, 6}) {
		t.Error(x)
	}
	for _, src := range []tensor.Tensor{b.Slice(0, 5), tensor.New(tensor.Float32, 6), {}} {
		if err := tensor.Copy(a, src); err == nil {
			t.Errorf("copied %v to %v", src, a)
		}
	}
	if err := tensor.Copy(tensor.Tensor{}, tensor.Tensor{}); err != nil {
		t.Errorf("copy of no elements: %v", err)
	}
}

// TestCopyOverlap shifts elements within one memory, both ways.
func TestCopyOverlap(t *testing.T) {
	for _, c := range []struct {
		to, from int
		want     []int64
	}{{2, 0, []int64{1, 2, 1, 2, 3, 4}}, {0, 2, []int64{3, 4, 5, 6, 5, 6}}} {
		x := []int64{1, 2, 3, 4, 5, 6}
		v := tensor.Of(x)
		if err := tensor.Copy(v.Slice(c.to, c.to+4), v.Slice(c.from, c.from+4)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, c.want) {
			t.Errorf("%d to %d: %v, want %v", c.from, c.to, x, c.want)
		}
	}
}

// TestCopyShort copies to and from memories that turn out too small.
func TestCopyShort(t *testing.T) {
	big := tensor.New(tensor.Uint8, 100)
	small := tensor.In(opaque{make(tensor.Host, 50)}, tensor.Uint8, 100)
	for _, c := range [][2]tensor.Tensor{{big, small}, {small, big}, {hidden(big), small}, {small, hidden(big)}} {
		if err := tensor.Copy(c[0], c[1]); err == nil {
			t.Errorf("copied 100 bytes through a memory of 50")
		}
	}
}
