package tensorfile

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		shape []int
		want  int64
		ok    bool
	}{
		{tensor.Float64, nil, 8, true},
		{tensor.Uint8, []int{2, 3}, 6, true},
		{tensor.Float16, []int{math.MaxInt, 0}, 0, false},
		{tensor.Float32, []int{0, math.MaxInt / 4}, 0, true},
		{tensor.Float32, []int{math.MaxInt / 4}, math.MaxInt - 3, true},
		{tensor.Float32, []int{math.MaxInt/4 + 1}, 0, false},
		{tensor.Uint8, []int{1 << 32, 1 << 31}, 0, false},
		{tensor.Uint8, []int{3, -1}, 0, false},
	} {
		if got, ok := Size(c.dtype, c.shape); got != c.want || ok != c.ok {
			t.Errorf("%v%v: %d, %v, want %d, %v", c.dtype, c.shape, got, ok, c.want, c.ok)
		}
	}
}

func TestReadFull(t *testing.T) {
	r, p := strings.NewReader("abcdef"), make([]byte, 4)
	if err := ReadFull(r, p, 2); err != nil || string(p) != "cdef" {
		t.Errorf("%q, %v", p, err)
	}
	err := ReadFull(r, p, 3)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "byte 6: ") {
		t.Errorf("cut off: %v", err)
	}
	broken := errors.New("broken")
	if err := ReadFull(failing{broken}, p, 5); !errors.Is(err, broken) || err.Error() != "byte 6: broken" {
		t.Errorf("a bad disk: %v", err)
	}
}

// A failing reader has one byte and then an error.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 1, f.err }
