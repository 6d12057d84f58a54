package ops

import (
	"cmp"
	"slices"

	"peermesh/ops/schedule"
)

// A round is one rank's part of a round of a schedule, with all worked out that does
// not depend on the tensor. It is made once for a plan, so that a small collective pays
// for none of it.
type round struct {
	talks  []talk // what is sent first, then what is received: so nothing small waits for another
	slots  int    // buffers for what may have to be held
	crowds []crowd
}

// A talk is all that a rank has to do with one peer in one direction in a round.
// It is one message: a lane takes one at a time, and each has its price.
type talk struct {
	peer   int
	send   bool
	chunks int
	moves  []schedule.Move
	held   []held // of a receive, by move
}

// Held says when a move that comes in may not land at once, and which buffer it then
// waits in.
type held struct {
	slot  int  // −1: it never waits
	crowd bool // others land there too: always
	clash bool // it lands on what the round sends: while that may still be on its way
}

// A crowd is a chunk on which several moves land, and how they and what is there are
// added up in the canonical order. A step folds its second part into its first.
type crowd struct {
	chunk int
	steps [][2]part
}

// A part is what one rank has of a chunk.
type part struct {
	rank int
	slot int // where its move is held; −1: it is in the tensor
	dst  int // first chunk of that move
}

type talkKey struct {
	peer int
	send bool
}

// roundsOf sorts a rank's moves by direction and peer. Every rank begins with those
// that follow it, so that not all fall on one at once.
func roundsOf(local []schedule.Round, self, size int) []round {
	all := make([]round, len(local))
	for i, moves := range local {
		at := make(map[talkKey]int)
		r := &all[i]
		for _, m := range moves {
			k := talkKey{m.From, false}
			if m.From == self {
				k = talkKey{m.To, true}
			}
			if _, ok := at[k]; !ok {
				at[k] = len(r.talks)
				r.talks = append(r.talks, talk{peer: k.peer, send: k.send})
			}
			t := &r.talks[at[k]]
			t.moves, t.chunks = append(t.moves, m), t.chunks+m.N
		}
		slices.SortStableFunc(r.talks, func(a, b talk) int { return cmp.Compare(a.turn(self, size), b.turn(self, size)) })
		r.hold(moves, self)
	}
	return all
}

// turn is when a talk comes in its round.
func (t *talk) turn(self, size int) int {
	if t.send {
		return (t.peer-self+size)%size - size
	}
	return (self - t.peer + size) % size
}

// hold finds what may have to wait, and what it is to be added up with. Whether a clash
// is one shows only when the round runs: what is small has left before anything comes.
func (r *round) hold(moves schedule.Round, self int) {
	seen := make(map[int]bool) // chunks that are crowded
	for i := range r.talks {
		t := &r.talks[i]
		if t.send {
			continue
		}
		t.held = make([]held, len(t.moves))
		for j, m := range t.moves {
			h := held{slot: -1, crowd: crowded(moves, m), clash: overlaps(moves, self, m)}
			if h.crowd || h.clash {
				h.slot = r.slots
				r.slots++
			}
			for c := m.Dst; h.crowd && c < m.Dst+m.N; c++ {
				seen[c] = true
			}
			t.held[j] = h
		}
	}
	for c := range seen {
		r.crowds = append(r.crowds, r.crowd(c, self))
	}
	slices.SortFunc(r.crowds, func(a, b crowd) int { return a.chunk - b.chunk })
}

// crowd is what there is to add up for chunk c.
func (r *round) crowd(c, self int) crowd {
	parts := []part{{rank: self, slot: -1}}
	for _, t := range r.talks {
		for j, m := range t.moves {
			if !t.send && t.held[j].crowd && m.Dst <= c && c < m.Dst+m.N {
				parts = append(parts, part{m.From, t.held[j].slot, m.Dst})
			}
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.rank - b.rank })
	sum := crowd{chunk: c}
	schedule.Fold(parts, func(a, b part) part {
		if b.slot < 0 { // the sum is to be where the tensor is; ops commute
			a, b = b, a
		}
		sum.steps = append(sum.steps, [2]part{a, b})
		return a
	})
	return sum
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

// overlaps reports whether m lands on a chunk that a move of the round sends.
func overlaps(moves schedule.Round, self int, m schedule.Move) bool {
	return slices.ContainsFunc(moves, func(o schedule.Move) bool {
		return o.From == self && meet(o.Src, o.N, m.Dst, m.N)
	})
}

func meet(a, n, b, m int) bool { return a < b+m && b < a+n }
