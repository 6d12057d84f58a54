package schedule

import (
	"fmt"
	"math"
	"slices"
)

// A symbol is the content of a chunk. Those below Ranks×Chunks are what rank
// symbol/Chunks held in chunk symbol%Chunks at the start; the rest are sums.
type symbol int32

// nowhere is the symbol of a sum that no move makes, nor any sum with it.
const nowhere symbol = -1

// A sum is the fold of two symbols, the lesser first.
type sum struct {
	a, b        symbol
	size        int32 // leaves of its tree, repetitions counted; saturates
	round, move int32 // that made it first
}

// A proof is a schedule in play.
type proof struct {
	Schedule
	cells []symbol // content of chunk c of rank r at r×Chunks+c
	wrote []int32  // 1 + the last round that landed on the cell; 0 for none
	last  []int32  // that round's last arrival there
	sums  []sum
	known map[uint64]symbol // sums by their operands

	wanted []symbol // per chunk: its canonical sum, once asked for
	places []int    // of the canonical tree's leaves
	line   []symbol // a chunk of every rank, in that order

	mark   []int32 // per symbol: the last call of parts that met it
	call   int32
	stack  []symbol
	leaves []symbol
}

// An arrival is one chunk that a move of the round brings.
type arrival struct {
	symbol   symbol
	move     int32
	previous int32 // the arrival at the same cell before it; −1 for none
}

// play runs s on symbols to its end.
func play(s Schedule) (*proof, error) {
	landings := 0
	for i, round := range s.Rounds {
		for _, m := range round {
			landings += m.N
		}
		if landings > MaxLandings {
			return nil, fmt.Errorf("round %d: more than %d chunks carried", i, MaxLandings)
		}
	}
	n := s.Ranks * s.Chunks
	p := &proof{
		Schedule: s,
		cells:    make([]symbol, n),
		wrote:    make([]int32, n),
		last:     make([]int32, n),
		known:    map[uint64]symbol{},
	}
	for i := range p.cells {
		p.cells[i] = symbol(i)
	}
	var air []arrival
	for i, round := range s.Rounds {
		air = air[:0]
		for j, m := range round {
			for k := range m.N {
				at := m.To*s.Chunks + m.Dst + k
				a := arrival{p.cells[m.From*s.Chunks+m.Src+k], int32(j), -1}
				if p.wrote[at] == int32(i+1) {
					a.previous = p.last[at]
				}
				p.wrote[at], p.last[at] = int32(i+1), int32(len(air))
				air = append(air, a)
			}
		}
		if err := p.land(i, air); err != nil {
			return nil, fmt.Errorf("round %d: %w", i, err)
		}
	}
	p.mark = make([]int32, n+len(p.sums))
	return p, nil
}

// land puts what round i brings where it goes, cell by cell.
func (p *proof) land(i int, air []arrival) (err error) {
	next := 0
	for _, m := range p.Rounds[i] {
		for k := range m.N {
			at := m.To*p.Chunks + m.Dst + k
			a := air[next]
			switch last := p.last[at] == int32(next); {
			case !last: // lands with the last
			case a.previous >= 0:
				if p.cells[at], err = p.gather(i, at, air); err != nil {
					return err
				}
			case m.Reduce:
				p.cells[at] = p.fold(p.cells[at], a.symbol, i, int(a.move))
			default:
				p.cells[at] = a.symbol
			}
			next++
		}
	}
	return nil
}

// gather is the canonical sum of what a cell holds and all that round i folds
// into it.
func (p *proof) gather(i, at int, air []arrival) (symbol, error) {
	type part struct {
		rank   int
		symbol symbol
	}
	last := p.last[at]
	parts := []part{{at / p.Chunks, p.cells[at]}}
	for next := last; next >= 0; next = air[next].previous {
		m := p.Rounds[i][air[next].move]
		if !m.Reduce {
			return 0, p.clash(i, at, air)
		}
		parts = append(parts, part{m.From, air[next].symbol})
	}
	slices.SortFunc(parts, func(a, b part) int { return a.rank - b.rank })
	for k := range parts[1:] {
		if parts[k].rank == parts[k+1].rank {
			return 0, p.clash(i, at, air)
		}
	}
	sum := Fold(parts, func(a, b part) part {
		return part{symbol: p.fold(a.symbol, b.symbol, i, int(air[last].move))}
	})
	return sum.symbol, nil
}

// fold is the symbol for a+b, made in move j of round i if it is new.
func (p *proof) fold(a, b symbol, i, j int) symbol {
	a, b = min(a, b), max(a, b)
	x, ok := p.known[operands(a, b)]
	if !ok {
		x = symbol(len(p.cells) + len(p.sums))
		size := min(int64(p.size(a))+int64(p.size(b)), math.MaxInt32)
		p.sums = append(p.sums, sum{a, b, int32(size), int32(i), int32(j)})
		p.known[operands(a, b)] = x
	}
	return x
}

// operands is the key of a+b, which is that of b+a.
func operands(a, b symbol) uint64 {
	return uint64(uint32(min(a, b)))<<32 | uint64(uint32(max(a, b)))
}
