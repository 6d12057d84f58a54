package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// at says of which chunk err speaks, and which move put there what is there.
func (p *proof) at(cell int, err error) error {
	r, k := cell/p.Chunks, cell%p.Chunks
	if p.wrote[cell] == 0 {
		return fmt.Errorf("chunk %d of rank %d, where nothing lands, %w", k, r, err)
	}
	return fmt.Errorf("chunk %d of rank %d, last written in round %d by %v, %w",
		k, r, p.wrote[cell]-1, p.writer(cell), err)
}

// writer finds the first move of the last round that landed on a cell.
func (p *proof) writer(cell int) Move {
	r, k := cell/p.Chunks, cell%p.Chunks
	for _, m := range p.Rounds[p.wrote[cell]-1] {
		if m.To == r && m.Dst <= k && k < m.Dst+m.N {
			return m
		}
	}
	return Move{}
}

// whyNot explains how x falls short of every rank's chunk k. The reason that
// comes first in a run is given: what has gone wrong in one move spoils all
// that follows.
func (p *proof) whyNot(x symbol, k int) error {
	if s, ok := p.blame(x, p.mixed); ok {
		return p.in(s, fmt.Errorf("%s meets %s", p.describe(s.a), p.describe(s.b)))
	}
	leaves := slices.Clone(p.parts(x))
	if other := int(leaves[0]) % p.Chunks; other != k {
		return fmt.Errorf("is made of chunk %d", other)
	}
	have := make([]bool, p.Ranks)
	for _, l := range leaves {
		have[int(l)/p.Chunks] = true
	}
	if s, ok := p.blame(x, p.repeats); ok {
		return p.in(s, fmt.Errorf("rank %d's contribution is counted twice", p.common(s)))
	}
	return fmt.Errorf("lacks the contribution of rank %d", slices.Index(have, false))
}

// blame descends from x to the sum that made it bad out of two good ones.
func (p *proof) blame(x symbol, bad func(symbol) bool) (sum, bool) {
	if !bad(x) {
		return sum{}, false
	}
	for {
		s, _ := p.sum(x) // one leaf alone is never bad
		switch {
		case bad(s.a):
			x = s.a
		case bad(s.b):
			x = s.b
		default:
			return s, true
		}
	}
}

// mixed reports whether x adds up different chunks.
func (p *proof) mixed(x symbol) bool {
	leaves := p.parts(x)
	for _, l := range leaves {
		if int(l)%p.Chunks != int(leaves[0])%p.Chunks {
			return true
		}
	}
	return false
}

// repeats reports whether x has something in it twice.
func (p *proof) repeats(x symbol) bool { return p.size(x) > len(p.parts(x)) }

// common is a rank that has contributed to both operands of s.
func (p *proof) common(s sum) int {
	a := slices.Clone(p.parts(s.a))
	slices.Sort(a)
	for _, l := range p.parts(s.b) {
		if _, ok := slices.BinarySearch(a, l); ok {
			return int(l) / p.Chunks
		}
	}
	return -1
}

// in says which move made s.
func (p *proof) in(s sum, err error) error {
	return fmt.Errorf("went wrong in round %d: %v: %w", s.round, p.Rounds[s.round][s.move], err)
}

func (p *proof) describe(x symbol) string {
	if _, ok := p.sum(x); !ok {
		return fmt.Sprintf("chunk %d of rank %d", int(x)%p.Chunks, int(x)/p.Chunks)
	}
	leaves := p.parts(x)
	return fmt.Sprintf("a sum of %d with chunk %d of rank %d in it",
		p.size(x), int(leaves[0])%p.Chunks, int(leaves[0])/p.Chunks)
}

// clash says which two arrivals at a cell, the earliest that cannot, land there
// together in round i.
func (p *proof) clash(i, at int, air []arrival) error {
	var moves []Move // latest first
	for next := p.last[at]; next >= 0; next = air[next].previous {
		moves = append(moves, p.Rounds[i][air[next].move])
	}
	slices.Reverse(moves)
	from := map[int]Move{}
	for _, m := range moves {
		o, clashes := from[m.From]
		if first := moves[0]; len(from) > 0 && !(m.Reduce && first.Reduce) {
			o, clashes = first, true
		}
		if clashes {
			return fmt.Errorf("%v: lands on chunk %d of rank %d, as %v does", m, at%p.Chunks, at/p.Chunks, o)
		}
		from[m.From] = m
	}
	return nil
}

// disorder says how a total is added up instead of canonically,
// where that can still be read.
func (p *proof) disorder(x symbol) error {
	const readable = 16
	if p.Ranks > readable {
		return errors.New("is not added up in the canonical order")
	}
	return fmt.Errorf("is added up as %s, not as %s", p.order(x), CanonicalOrder(p.Ranks))
}

// order prints the tree of a total as sums of ranks, the side of the lower rank
// first.
func (p *proof) order(x symbol) string {
	text, _ := p.tree(x)
	if _, ok := p.sum(x); ok {
		text = text[1 : len(text)-1]
	}
	return text
}

func (p *proof) tree(x symbol) (text string, least int) {
	s, ok := p.sum(x)
	if !ok {
		rank := int(x) / p.Chunks
		return strconv.Itoa(rank), rank
	}
	a, i := p.tree(s.a)
	b, j := p.tree(s.b)
	if i > j {
		a, b = b, a
	}
	return "(" + a + "+" + b + ")", min(i, j)
}
