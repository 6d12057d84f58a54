package ops

import (
	"context"
	"slices"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// A talk is what a rank has to do with one peer in one direction in a round, in
// order: a lane takes one message at a time.
type talk struct {
	moves []schedule.Move
	bytes int64
	late  [][]byte // by move: where it waits to land; nil if it need not
}

// round posts every move at once. What comes in is folded as it arrives, unless
// a chunk that it lands on is still on its way out (every move reads the state
// from before the round) or gets more from others: then it lands at the end,
// and what came from several ranks is added up in the canonical order.
func (r *run) round(ctx context.Context, lane, i int, round schedule.Round) error {
	if len(round) == 1 {
		return r.move(ctx, lane, i, round[0], nil)
	}
	talks, leaving, err := r.talks(ctx, lane, i, round)
	if err != nil {
		return err
	}
	var waiting []waiter
	for k := range talks {
		for j, m := range talks[k].moves {
			crowd := crowded(round, m)
			if m.To != r.t.Rank() || !crowd && !slices.ContainsFunc(leaving, func(s schedule.Move) bool { return meet(s.Src, s.N, m.Dst, m.N) }) {
				continue
			}
			late := scratch.get(r.layout.bytes(lane, m.Dst, m.N))
			defer scratch.put(late)
			talks[k].late[j] = late
			waiting = append(waiting, waiter{m, late, crowd})
		}
	}
	err = together(ctx, len(talks), func(ctx context.Context, k int) error {
		for j, m := range talks[k].moves {
			if err := r.move(ctx, lane, i, m, talks[k].late[j]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.settle(lane, waiting)
}

// talks sorts a round's moves by peer and direction. Sends to a peer that are
// small together are made at once, the others returned as leaving too.
func (r *run) talks(ctx context.Context, lane, i int, round schedule.Round) (all []talk, leaving []schedule.Move, err error) {
	type key struct{ from, to int }
	known := map[key]int{}
	for _, m := range round {
		k, ok := known[key{m.From, m.To}]
		if !ok {
			k = len(all)
			known[key{m.From, m.To}] = k
			all = append(all, talk{})
		}
		all[k].moves = append(all[k].moves, m)
		all[k].bytes += r.layout.bytes(lane, m.Src, m.N)
	}
	kept := all[:0]
	for _, t := range all {
		if t.moves[0].From == r.t.Rank() && t.bytes <= inline {
			for _, m := range t.moves {
				if err := r.move(ctx, lane, i, m, nil); err != nil {
					return nil, nil, err
				}
			}
			continue
		}
		if t.moves[0].From == r.t.Rank() {
			leaving = append(leaving, t.moves...)
		}
		t.late = make([][]byte, len(t.moves))
		kept = append(kept, t)
	}
	return kept, leaving, nil
}

// crowded reports whether another move of the round lands where m does.
func crowded(round schedule.Round, m schedule.Move) bool {
	n := 0
	for _, o := range round {
		if o.To == m.To && meet(o.Dst, o.N, m.Dst, m.N) {
			n++
		}
	}
	return n > 1
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
			if err := r.layout.write(lane, w.Move, r.op)(w.p); err != nil {
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
	off, n := r.layout.span(lane, c)
	parts := []part{{rank: r.t.Rank()}}
	for _, w := range waiting {
		if w.Dst <= c && c < w.Dst+w.N {
			skip := r.layout.bytes(lane, w.Dst, c-w.Dst)
			parts = append(parts, part{w.From, w.p[skip : skip+n]})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.rank - b.rank })
	var failed error
	schedule.Fold(parts, func(a, b part) part {
		var err error
		if b.p == nil {
			a, b = b, a
		}
		if a.p == nil {
			err = r.layout.x.ReduceAt(b.p, off, r.op)
		} else {
			err = tensor.Host(a.p).ReduceAt(b.p, 0, r.layout.x.DType(), r.op)
		}
		if err != nil && failed == nil {
			failed = err
		}
		return a
	})
	return failed
}
