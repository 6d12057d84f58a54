package schedule

import (
	"fmt"
	"strings"
)

// MaxRanks bounds the schedules whose number of moves grows with the square of
// the ranks: Ring, Bruck, Cascade, Direct, OneShot and the all-to-alls. An
// all-reduce around a ring of 256 is 130,560 moves (6 MB), of 1,024 it is 2
// million (100 MB); beyond that a value of the whole world is the wrong tool.
// Above it use Hierarchical, whose heads alone form a ring, or the schedules of
// O(n log n) moves and fewer: Halving, Doubling, Binomial, BinomialGather, Tree,
// DirectGather and Dissemination.
const MaxRanks = 1024

// A Move carries chunks [Src, Src+N) of From to chunks [Dst, Dst+N) of To. It
// names both its ends, so a send without its receive cannot be written.
type Move struct {
	From, To    int
	Src, Dst, N int
	Reduce      bool // fold into the destination rather than replace it
}

// A Round is a set of simultaneous moves: all read the state from before the
// round, and all land at its end. Their order is only that in which a rank sends
// when it has several, or one several times to the same rank.
//
// Several may land on one chunk if all fold and come from different ranks. The
// chunk is then replaced by one sum, of what was there and what has come, in the
// canonical order of the ranks that these are from (see Fold), however they
// arrive: where rank 1 gets a chunk from 0, 2 and 3, (0+2)+(1+3).
type Round []Move

// A Schedule is one collective of the whole world: Ranks ranks, each with a
// vector cut into Chunks chunks, and who sends which to whom, round by round.
// Bytes do not occur in it; they enter when it is priced or executed.
//
// A schedule is a value: nothing changes one that is built, and the
// combinators share the rounds they leave as they are. To alter one, copy its
// rounds first.
type Schedule struct {
	Name   string
	Ranks  int
	Chunks int
	Rounds []Round
}

// Local returns rank's part: the moves that it sends or receives, one entry
// for each round of s, so that an index is still the round's number. Rounds
// without it are empty.
func (s Schedule) Local(rank int) []Round {
	n := 0
	for _, round := range s.Rounds {
		for _, m := range round {
			if m.From == rank || m.To == rank {
				n++
			}
		}
	}
	moves := make(Round, 0, n)
	rounds := make([]Round, len(s.Rounds))
	for i, round := range s.Rounds {
		start := len(moves)
		for _, m := range round {
			if m.From == rank || m.To == rank {
				moves = append(moves, m)
			}
		}
		rounds[i] = moves[start:len(moves):len(moves)]
	}
	return rounds
}

// Aligned reports whether every chunk lands in the place that it left. Then
// nothing depends on chunks of equal length: chunk r may be as long as rank r's
// part happens to be, as in a gather of uneven parts. What is not aligned, the
// all-to-alls above all, needs all chunks of one length.
func (s Schedule) Aligned() bool {
	for _, round := range s.Rounds {
		for _, m := range round {
			if m.Src != m.Dst {
				return false
			}
		}
	}
	return true
}

// Algorithm is the one word by which a schedule is known among others for the
// same collective: "ring" for Ring(n), AllReduce(Ring(n)) and
// Broadcast(Ring(n), root) alike, "hierarchical" whatever the heads do. Schedules
// that are put together in other ways have the name of their first part.
func (s Schedule) Algorithm() string {
	name := s.Name
	for wrapped := true; wrapped; {
		wrapped = false
		for _, w := range []string{"all-reduce(", "broadcast(", "reduce(", "reverse("} {
			if rest, ok := strings.CutPrefix(name, w); ok {
				name, wrapped = rest, true
			}
		}
	}
	end := strings.IndexAny(name, "( )")
	if end < 0 {
		return name
	}
	return name[:end]
}

// wellFormed reports the first move that means nothing: an end that is no
// rank, a rank that sends to itself, a span outside the vector. It also holds s to
// MaxCells.
func (s Schedule) wellFormed() error {
	if s.Ranks < 1 || s.Chunks < 1 {
		return fmt.Errorf("%d ranks, %d chunks: want at least one of each", s.Ranks, s.Chunks)
	}
	if s.Chunks > MaxCells/s.Ranks {
		return fmt.Errorf("%d ranks × %d chunks: at most %d", s.Ranks, s.Chunks, MaxCells)
	}
	for i, round := range s.Rounds {
		for _, m := range round {
			if err := m.fits(s.Ranks, s.Chunks); err != nil {
				return fmt.Errorf("round %d: %v: %w", i, m, err)
			}
		}
	}
	return nil
}

func (m Move) fits(ranks, chunks int) error {
	inside := func(lo int) bool { return 0 <= lo && lo <= chunks-m.N }
	switch {
	case m.From < 0 || m.From >= ranks:
		return fmt.Errorf("no rank %d among %d", m.From, ranks)
	case m.To < 0 || m.To >= ranks:
		return fmt.Errorf("no rank %d among %d", m.To, ranks)
	case m.From == m.To:
		return fmt.Errorf("rank %d sends to itself", m.From)
	case m.N < 1:
		return fmt.Errorf("moves %d chunks", m.N)
	case m.N > chunks || !inside(m.Src) || !inside(m.Dst):
		return fmt.Errorf("outside the %d chunks", chunks)
	}
	return nil
}
