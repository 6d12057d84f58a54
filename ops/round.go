package ops

import (
	"context"
	"slices"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// A round is one rank's part of a round of a schedule.
type round []talk

// A talk is all that a rank has to do with one peer in one direction in a round.
// It is one message: a lane takes one at a time, and each has its price.
type talk struct {
	peer  int
	send  bool
	moves []schedule.Move
	crowd []bool // of a receive, by move: whether others land there too
}

// roundsOf sorts a rank's moves by peer and direction. It is done once for a plan, so
// that a small collective pays for none of it.
func roundsOf(local []schedule.Round, self int) []round {
	all := make([]round, len(local))
	for i, moves := range local {
		at := make(map[talkKey]int)
		for _, m := range moves {
			k := talkKey{m.From, false}
			if m.From == self {
				k = talkKey{m.To, true}
			}
			if _, ok := at[k]; !ok {
				at[k] = len(all[i])
				all[i] = append(all[i], talk{peer: k.peer, send: k.send})
			}
			t := &all[i][at[k]]
			t.moves = append(t.moves, m)
			t.crowd = append(t.crowd, !k.send && crowded(moves, m))
		}
	}
	return all
}

type talkKey struct {
	peer int
	send bool
}

// crowded reports whether a rank's other moves of the round land where m does.
func crowded(moves schedule.Round, m schedule.Move) bool {
	n := 0
	for _, o := range moves {
		if o.To == m.To && meet(o.Dst, o.N, m.Dst, m.N) {
			n++
		}
	}
	return n > 1
}

// round posts every move at once. What comes in is folded as it arrives, unless
// a chunk that it lands on is still on its way out (every move reads the state
// from before the round) or gets more from others: then it lands at the end,
// and what came from several ranks is added up in the canonical order.
func (r *run) round(ctx context.Context, lane, i int, talks round) error {
	if len(talks) == 1 {
		return r.exchange(ctx, lane, i, talks[0], nil)
	}
	var busy []talk             // those that may have to wait
	var leaving []schedule.Move // what they send of where others land
	for _, t := range talks {
		// What fits into the lane's window is gone when Send returns, whoever waits for
		// whom: it needs no goroutine, and what lands later cannot change it.
		if t.send && r.size(lane, t) <= inline {
			if err := r.send(ctx, lane, i, t); err != nil {
				return err
			}
			continue
		}
		busy = append(busy, t)
		if t.send && !r.apart {
			leaving = append(leaving, t.moves...)
		}
	}
	var waiting []waiter
	held := make([][][]byte, len(busy)) // by talk and move; nil: nothing, or not this one
	for k, t := range busy {
		for j, m := range t.moves {
			if t.send || !t.crowd[j] && !overlap(leaving, m) {
				continue
			}
			if held[k] == nil {
				held[k] = make([][]byte, len(t.moves))
			}
			held[k][j] = scratch.get(r.dst.bytes(lane, m.Dst, m.N))
			defer scratch.put(held[k][j])
			waiting = append(waiting, waiter{m, held[k][j], t.crowd[j]})
		}
	}
	err := together(ctx, len(busy), func(ctx context.Context, k int) error {
		return r.exchange(ctx, lane, i, busy[k], held[k])
	})
	if err != nil {
		return err
	}
	return r.settle(lane, waiting)
}

// overlap reports whether m lands on a chunk that one of the others reads.
func overlap(others []schedule.Move, m schedule.Move) bool {
	return slices.ContainsFunc(others, func(o schedule.Move) bool { return meet(o.Src, o.N, m.Dst, m.N) })
}

func meet(a, n, b, m int) bool { return a < b+m && b < a+n }

// A waiter is a move that has come but not landed.
type waiter struct {
	schedule.Move
	p     []byte
	crowd bool
}

// settle lands what waits.
func (r *run) settle(lane int, waiting []waiter) error {
	chunks := map[int]bool{}
	for _, w := range waiting {
		if !w.crowd {
			if err := r.dst.write(lane, w.Move, r.op)(w.p); err != nil {
				return err
			}
			continue
		}
		for c := w.Dst; c < w.Dst+w.N; c++ {
			if !chunks[c] {
				chunks[c] = true
				if err := r.gather(lane, c, waiting); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gather adds all that waits for chunk c to what is there, in the canonical order.
func (r *run) gather(lane, c int, waiting []waiter) error {
	type part struct {
		rank int
		p    []byte // nil: in the tensor
	}
	off, n := r.dst.span(lane, c)
	if n == 0 {
		return nil
	}
	parts := []part{{rank: r.t.Rank()}}
	for _, w := range waiting {
		if w.Dst <= c && c < w.Dst+w.N {
			skip := r.dst.bytes(lane, w.Dst, c-w.Dst)
			parts = append(parts, part{w.From, w.p[skip : skip+n]})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.rank - b.rank })
	var failed error
	schedule.Fold(parts, func(a, b part) part {
		var err error
		if b.p == nil { // the sum is to be where the tensor is; ops commute
			a, b = b, a
		}
		if a.p == nil {
			err = r.dst.x.ReduceAt(b.p, off, r.op)
		} else {
			err = tensor.Host(a.p).ReduceAt(b.p, 0, r.dst.x.DType(), r.op)
		}
		if err != nil && failed == nil {
			failed = err
		}
		return a
	})
	return failed
}
