package schedule

import "fmt"

// Bounds on what Check will prove, so that a schedule from elsewhere cannot
// make it run without end: half a gigabyte and a few seconds at most. An
// all-reduce of 2,048 ranks by halving is just inside both.
const (
	MaxCells    = 1 << 22 // ranks × chunks
	MaxLandings = 1 << 23 // chunks carried, over all moves
)

// Check proves that s keeps contract c, or says which round, move and chunk
// break it. It plays the schedule on symbols instead of numbers: every chunk
// of every rank starts as a symbol of its own, a fold makes a new symbol of
// two, and at the end each symbol that the contract speaks of is taken apart.
// Three things are shown.
//
//   - A total has every rank's contribution to that chunk in it exactly once.
//   - Two moves of a round may land on one chunk only if both fold and are from
//     different ranks; all that lands there is then one sum in the canonical
//     order, so the order in which messages arrive never shows.
//   - All copies of a total are one symbol: one summation tree, up to which
//     operand is the left one. Floating-point addition commutes although it does
//     not associate, so the copies agree bit for bit.
//
// Equal symbols are equal trees by construction (a sum is looked up before it
// is made), not by a hash that could collide. A nil error is a proof about
// values, one run at a time; that every rank follows the schedule is the
// executor's business.
func Check(s Schedule, c Contract) error {
	if err := check(s, c); err != nil {
		return fmt.Errorf("schedule: %s is no %v: %w", s.Name, c, err)
	}
	return nil
}

func check(s Schedule, c Contract) error {
	if err := s.wellFormed(); err != nil {
		return err
	}
	if err := c.allows(s.Ranks, s.Chunks); err != nil {
		return err
	}
	p, err := play(s)
	if err != nil {
		return err
	}
	if c.kind == reduction {
		return p.onceEach(c.canonical)
	}
	return p.keeps(c)
}

// keeps checks the end state against c, cell by cell.
func (p *proof) keeps(c Contract) error {
	first := make([]int, p.Chunks) // 1 + the cell of the first total of each chunk
	for at, x := range p.cells {
		r, k := at/p.Chunks, at%p.Chunks
		var err error
		switch d := c.demand(r, k, p.Ranks, p.Chunks); d.what {
		case original:
			if want := symbol(d.rank*p.Chunks + d.chunk); x != want {
				err = fmt.Errorf("is %s, not %s", p.describe(x), p.describe(want))
			}
		case union:
			if !p.all(x, k) {
				err = p.whyNot(x, k)
			}
		case total:
			if c.canonical {
				err = p.inOrder(x, k)
				break
			}
			if first[k] == 0 {
				first[k] = at + 1
			}
			one := first[k] - 1
			switch {
			case one != at && x == p.cells[one]:
			case !p.total(x, k):
				err = p.whyNot(x, k)
			case one != at:
				err = fmt.Errorf("is added up in another order than on rank %d, so that bits may differ", one/p.Chunks)
			}
		}
		if err != nil {
			return p.at(at, err)
		}
	}
	return nil
}

// onceEach checks that the total of each chunk is on exactly one rank.
func (p *proof) onceEach(canonical bool) error {
	for k := range p.Chunks {
		owner, most := -1, k // most: the cell with the largest sum, to blame
		for at := k; at < len(p.cells); at += p.Chunks {
			x := p.cells[at]
			if p.size(x) > p.size(p.cells[most]) {
				most = at
			}
			if !p.total(x, k) {
				continue
			}
			if owner >= 0 {
				return p.at(at, fmt.Errorf("is whole, as it is on rank %d", owner))
			}
			owner = at / p.Chunks
		}
		if owner < 0 {
			return fmt.Errorf("whole nowhere: %w", p.at(most, p.whyNot(p.cells[most], k)))
		}
		if at := owner*p.Chunks + k; canonical {
			if err := p.inOrder(p.cells[at], k); err != nil {
				return p.at(at, err)
			}
		}
	}
	return nil
}

// inOrder checks that x is every rank's chunk k added up in the canonical order.
func (p *proof) inOrder(x symbol, k int) error {
	switch {
	case x == p.canonical(k):
		return nil
	case !p.total(x, k):
		return p.whyNot(x, k)
	}
	return p.disorder(x)
}

// canonical is the symbol of every rank's chunk k added up in the canonical order, or
// nowhere. It is found once for all the ranks that should have it: equal sums are one
// symbol, so a copy costs a comparison.
func (p *proof) canonical(k int) symbol {
	if p.wanted == nil {
		p.wanted, p.places = make([]symbol, p.Chunks), leaves(p.Ranks)
		p.line = make([]symbol, p.Ranks)
	}
	if p.wanted[k] != 0 { // 0 is a leaf: it is the sum of one rank alone, and soon found again
		return p.wanted[k]
	}
	for place, r := range p.places {
		p.line[place] = symbol(r*p.Chunks + k)
	}
	p.wanted[k] = foldHalves(p.line, func(a, b symbol) symbol {
		if sum, ok := p.known[operands(a, b)]; ok {
			return sum
		}
		return nowhere
	})
	return p.wanted[k]
}

// total reports whether x is every rank's chunk k, each exactly once: as many
// leaves as ranks, and every rank's among them.
func (p *proof) total(x symbol, k int) bool {
	return p.size(x) == p.Ranks && p.all(x, k)
}

// all reports whether the leaves of x are every rank's chunk k, and no other.
func (p *proof) all(x symbol, k int) bool {
	leaves := p.parts(x)
	for _, l := range leaves {
		if int(l)%p.Chunks != k {
			return false
		}
	}
	return len(leaves) == p.Ranks
}

// size is the number of leaves of x's tree, repetitions counted.
func (p *proof) size(x symbol) int {
	if s, ok := p.sum(x); ok {
		return int(s.size)
	}
	return 1
}

// sum returns how x was made; false for what was there at the start.
func (p *proof) sum(x symbol) (sum, bool) {
	i := int(x) - len(p.cells)
	if i < 0 {
		return sum{}, false
	}
	return p.sums[i], true
}

// parts returns the different leaves of x, until the next call. A tree with
// repetitions may be exponentially large, so shared sums are entered once.
func (p *proof) parts(x symbol) []symbol {
	p.call++
	p.leaves = p.leaves[:0]
	p.stack = append(p.stack[:0], x)
	for len(p.stack) > 0 {
		x := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		if p.mark[x] == p.call {
			continue
		}
		p.mark[x] = p.call
		if s, ok := p.sum(x); ok {
			p.stack = append(p.stack, s.a, s.b)
		} else {
			p.leaves = append(p.leaves, x)
		}
	}
	return p.leaves
}
