package ops

import (
	"fmt"
	"sort"

	"peermesh/ops/tensor"
)

// A joined memory is several tensors of one element type, end to end. A list of
// tensors is one tensor over it, so that what carries one tensor carries a list:
// below the collectives nothing knows of lists.
type joined struct {
	parts []tensor.Tensor // none is empty
	ends  []int64         // of each part, in bytes from the start of the first
	size  int64
}

// join is the parts as one tensor; one part alone is itself.
func join(t tensor.DType, parts []tensor.Tensor) tensor.Tensor {
	j := new(joined)
	for _, x := range parts {
		if x.Len() > 0 {
			j.size += x.Bytes()
			j.parts, j.ends = append(j.parts, x), append(j.ends, j.size)
		}
	}
	if len(j.parts) == 1 {
		return j.parts[0].Slice(0, j.parts[0].Len())
	}
	return tensor.In(j, t, int(j.size)/t.Size())
}

// stretch is how many of the bytes [off, off+n) of x, from the first on, lie in one
// memory, and so may be lent in one piece.
func stretch(x tensor.Tensor, off, n int64) int64 {
	j, ok := x.Memory().(*joined)
	if !ok || n == 0 {
		return n
	}
	off += x.Offset()
	return min(n, j.ends[j.at(off)]-off)
}

// at is the part that holds a byte of those that there are.
func (j *joined) at(off int64) int {
	return sort.Search(len(j.ends), func(i int) bool { return off < j.ends[i] })
}

// each gives f the memories of bytes [off, off+len(p)): a memory, the piece of p that
// belongs there, and where.
func (j *joined) each(p []byte, off int64, f func(m tensor.Memory, p []byte, off int64) error) error {
	n := int64(len(p))
	if off < 0 || off > j.size || n > j.size-off {
		return &tensor.RangeError{Off: off, N: n, Size: j.size}
	}
	for len(p) > 0 {
		x, in, left := j.part(off)
		k := min(int64(len(p)), left)
		if err := f(x.Memory(), p[:k], x.Offset()+in); err != nil {
			return err
		}
		p, off = p[k:], off+k
	}
	return nil
}

// part is what holds a byte, where in it that is, and how many bytes it has from there.
func (j *joined) part(off int64) (x tensor.Tensor, in, left int64) {
	i := j.at(off)
	left = j.ends[i] - off
	return j.parts[i], j.parts[i].Bytes() - left, left
}

// ReadAt copies bytes [off, off+len(p)) to p.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	err = j.each(p, off, func(m tensor.Memory, p []byte, off int64) error {
		k, err := m.ReadAt(p, off)
		n += k
		return err
	})
	return n, err
}

// WriteAt copies p to bytes [off, off+len(p)).
func (j *joined) WriteAt(p []byte, off int64) (n int, err error) {
	err = j.each(p, off, func(m tensor.Memory, p []byte, off int64) error {
		k, err := m.WriteAt(p, off)
		n += k
		return err
	})
	return n, err
}

// ReduceAt folds p into bytes [off, off+len(p)). Parts hold whole elements, so none
// is cut where p is not.
func (j *joined) ReduceAt(p []byte, off int64, t tensor.DType, op tensor.Op) error {
	if err := op.Check(t); err != nil {
		return err
	}
	if size := t.Size(); len(p)%size != 0 || off%int64(size) != 0 {
		return fmt.Errorf("ops: reduce of %d bytes at %d cuts a %v in two", len(p), off, t)
	}
	return j.each(p, off, func(m tensor.Memory, p []byte, off int64) error {
		return m.ReduceAt(p, off, t, op)
	})
}

// View lends bytes [off, off+n) if one part has them all and lends them.
func (j *joined) View(off, n int64) []byte {
	if off < 0 || n < 0 || off >= j.size {
		return nil
	}
	x, in, _ := j.part(off)
	p, _ := x.View(in, n)
	return p
}
