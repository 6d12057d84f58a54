package ops

import (
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

// each gives f the parts of bytes [off, off+len(p)): a part, where in it, and the
// piece of p that belongs there.
func (j *joined) each(p []byte, off int64, f func(x tensor.Tensor, p []byte, off int64) error) error {
	n := int64(len(p))
	if off < 0 || off > j.size || n > j.size-off {
		return &tensor.RangeError{Off: off, N: n, Size: j.size}
	}
	for len(p) > 0 {
		i := j.at(off)
		k := min(int64(len(p)), j.ends[i]-off)
		if err := f(j.parts[i], p[:k], off-j.ends[i]+j.parts[i].Bytes()); err != nil {
			return err
		}
		p, off = p[k:], off+k
	}
	return nil
}

// ReadAt copies bytes [off, off+len(p)) to p.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	err = j.each(p, off, func(x tensor.Tensor, p []byte, off int64) error {
		k, err := x.ReadAt(p, off)
		n += k
		return err
	})
	return n, err
}

// WriteAt copies p to bytes [off, off+len(p)).
func (j *joined) WriteAt(p []byte, off int64) (n int, err error) {
	err = j.each(p, off, func(x tensor.Tensor, p []byte, off int64) error {
		k, err := x.WriteAt(p, off)
		n += k
		return err
	})
	return n, err
}

// ReduceAt folds p into bytes [off, off+len(p)). Parts hold whole elements, so none
// is cut where p is not.
func (j *joined) ReduceAt(p []byte, off int64, _ tensor.DType, op tensor.Op) error {
	return j.each(p, off, func(x tensor.Tensor, p []byte, off int64) error {
		return x.ReduceAt(p, off, op)
	})
}

// View lends bytes [off, off+n) if one part has them all and lends them.
func (j *joined) View(off, n int64) []byte {
	if off < 0 || n < 0 || off >= j.size {
		return nil
	}
	i := j.at(off)
	p, _ := j.parts[i].View(off-j.ends[i]+j.parts[i].Bytes(), n)
	return p
}
