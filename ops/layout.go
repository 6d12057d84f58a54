package ops

import (
	"fmt"

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
func (l *layout) chunk(c int) (lo, hi int) {
	if l.bounds != nil {
		return l.bounds[c], l.bounds[c+1]
	}
	return share(l.x.Len(), c, l.chunks)
}

// span is the part of chunk c that travels on a lane, in bytes.
func (l *layout) span(lane, c int) (off, n int64) {
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
func (l *layout) bytes(lane, c, n int) (total int64) {
	for k := range n {
		_, b := l.span(lane, c+k)
		total += b
	}
	return total
}

// each yields a lane's part of chunks [c, c+n): views where the memory lends them,
// neighbours in one piece, and pieces of a staging buffer where it does not. It reports
// whether yield wanted all.
func (l *layout) each(lane, c, n int, yield func([]byte, error) bool) bool {
	for end := c + n; c < end; {
		off, left := l.span(lane, c)
		for c++; c < end; c++ {
			next, more := l.span(lane, c)
			if next != off+left {
				break
			}
			left += more
		}
		for left > 0 {
			run := stretch(l.x, off, left)
			if p, ok := l.x.View(off, run); !ok {
				if !l.staged(off, run, yield) {
					return false
				}
			} else if !yield(p, nil) {
				return false
			}
			off, left = off+run, left-run
		}
	}
	return true
}

// staged yields bytes [off, off+n) through a buffer.
func (l *layout) staged(off, n int64, yield func([]byte, error) bool) bool {
	stage := scratch.get(min(stageSize, n))
	defer scratch.put(stage)
	for n > 0 {
		p := stage[:min(n, int64(len(stage)))]
		_, err := l.x.ReadAt(p, off)
		if !yield(p, err) || err != nil {
			return false
		}
		off, n = off+int64(len(p)), n-int64(len(p))
	}
	return true
}

// whole is the move of a tensor in one piece.
var whole = schedule.Move{N: 1}

// A landing is where a lane's part of a move's destination goes, in order, in pieces
// of whole elements: it is put there, or folded in straight from where it lies.
type landing struct {
	l         *layout
	op        tensor.Op
	move      schedule.Move
	lane, c   int
	off, left int64
}

func (d *landing) start(l *layout, lane int, m schedule.Move, op tensor.Op) {
	d.l, d.op, d.move, d.lane, d.c = l, op, m, lane, m.Dst
	d.off, d.left = l.span(lane, m.Dst)
}

func (d *landing) land(p []byte) error {
	for len(p) > 0 {
		for d.left == 0 {
			if d.c++; d.c >= d.move.Dst+d.move.N {
				return fmt.Errorf("%d bytes beyond the end of %v", len(p), d.move)
			}
			d.off, d.left = d.l.span(d.lane, d.c)
		}
		k := min(d.left, int64(len(p)))
		var err error
		if d.move.Reduce {
			err = d.l.x.ReduceAt(p[:k], d.off, d.op)
		} else {
			_, err = d.l.x.WriteAt(p[:k], d.off)
		}
		if err != nil {
			return err
		}
		p, d.off, d.left = p[k:], d.off+k, d.left-k
	}
	return nil
}
