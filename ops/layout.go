package ops

import (
	"fmt"
	"iter"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// stageSize is the piece, in bytes, in which memory that cannot be viewed is
// read on its way to the wire.
const stageSize = 256 << 10

// A layout cuts a tensor into chunks, and each chunk into lanes. All of it is
// arithmetic that ranks do alike: for all chunks, or where chunks have lengths of
// their own, for those that a rank sends or receives.
//
// The chunks come first: an element's chunk, and with it the order in which its
// sum is taken, then does not depend on the number of lanes, so neither do the
// bits of the result.
type layout struct {
	x      tensor.Tensor
	chunks int
	lanes  int
	elem   int64
	bounds []int // where chunk c begins, in elements, and c+1 with it ends; nil: equal shares
}

func newLayout(x tensor.Tensor, chunks, lanes int) layout {
	return layout{x: x, chunks: chunks, lanes: lanes, elem: int64(x.DType().Size())}
}

// listLayout has chunk c be the c-th tensor, of any length.
func listLayout(t tensor.DType, list []tensor.Tensor, lanes int) layout {
	l := newLayout(join(t, list), len(list), lanes)
	l.bounds = make([]int, 1, len(list)+1)
	for c, x := range list {
		l.bounds = append(l.bounds, l.bounds[c]+x.Len())
	}
	return l
}

// chunk is where chunk c begins and ends, in elements.
func (l layout) chunk(c int) (lo, hi int) {
	if l.bounds != nil {
		return l.bounds[c], l.bounds[c+1]
	}
	return share(l.x.Len(), c, l.chunks)
}

// span is the part of chunk c that travels on a lane, in bytes.
func (l layout) span(lane, c int) (off, n int64) {
	lo, hi := l.chunk(c)
	a, b := share(hi-lo, lane, l.lanes)
	return int64(lo+a) * l.elem, int64(b-a) * l.elem
}

// share is part i of n of a run of the given length: as equal as whole elements
// allow. 64-bit products do not overflow below 2⁶³ / parts elements.
func share(length, i, n int) (lo, hi int) {
	return i * length / n, (i + 1) * length / n
}

// bytes is the length of a lane's part of chunks [c, c+n).
func (l layout) bytes(lane, c, n int) (total int64) {
	for k := range n {
		_, b := l.span(lane, c+k)
		total += b
	}
	return total
}

// read yields a lane's part of chunks [c, c+n): views where the memory lends
// them, pieces of a staging buffer where it does not.
func (l layout) read(lane, c, n int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var stage []byte
		for k := range n {
			off, left := l.span(lane, c+k)
			for left > 0 {
				run := stretch(l.x, off, left)
				p, ok := l.x.View(off, run)
				var err error
				if !ok {
					if stage == nil {
						stage = make([]byte, min(stageSize, l.bytes(lane, c, n)))
					}
					p = stage[:min(left, int64(len(stage)))]
					_, err = l.x.ReadAt(p, off)
				}
				if !yield(p, err) || err != nil {
					return
				}
				off, left = off+int64(len(p)), left-int64(len(p))
			}
		}
	}
}

// whole is the move of a tensor in one piece.
var whole = schedule.Move{N: 1}

// write returns a function that takes a lane's part of a move's destination, in
// order, in pieces of whole elements, and puts it there or folds it in.
func (l layout) write(lane int, m schedule.Move, op tensor.Op) func(p []byte) error {
	c, end := m.Dst, m.Dst+m.N
	off, left := l.span(lane, c)
	return func(p []byte) error {
		for len(p) > 0 {
			for left == 0 {
				if c++; c == end {
					return fmt.Errorf("%d bytes beyond the end of %v", len(p), m)
				}
				off, left = l.span(lane, c)
			}
			k := min(left, int64(len(p)))
			var err error
			if m.Reduce {
				err = l.x.ReduceAt(p[:k], off, op)
			} else {
				_, err = l.x.WriteAt(p[:k], off)
			}
			if err != nil {
				return err
			}
			p, off, left = p[k:], off+k, left-k
		}
		return nil
	}
}
