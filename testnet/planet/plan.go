package planet

import (
	"iter"
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// A Plan is a schedule whose rounds come one after the other: it need not fit into
// memory. A round may be used until the next one comes.
type Plan struct {
	Name   string
	Ranks  int
	Chunks int
	Moves  int // of all rounds
	Rounds iter.Seq[schedule.Round]
}

// PlanOf is a plan of what is there in full.
func PlanOf(s schedule.Schedule) Plan {
	p := Plan{Name: s.Name, Ranks: s.Ranks, Chunks: s.Chunks, Rounds: slices.Values(s.Rounds)}
	for _, round := range s.Rounds {
		p.Moves += len(round)
	}
	return p
}

// On is the plan with rank order[i] in the place of rank i.
func (p Plan) On(order []int) Plan {
	var moved schedule.Round
	q := p
	q.Rounds = func(yield func(schedule.Round) bool) {
		for round := range p.Rounds {
			moved = moved[:0]
			for _, m := range round {
				m.From, m.To = order[m.From], order[m.To]
				moved = append(moved, m)
			}
			if !yield(moved) {
				return
			}
		}
	}
	return q
}

// Schedule writes a plan down in full.
func (p Plan) Schedule() schedule.Schedule {
	s := schedule.Schedule{Name: p.Name, Ranks: p.Ranks, Chunks: p.Chunks}
	for round := range p.Rounds {
		s.Rounds = append(s.Rounds, slices.Clone(round))
	}
	return s
}

// Price is schedule.Price of the plan.
func (p Plan) Price(bytes int, l schedule.Links) time.Duration {
	return schedule.PriceRounds(p.Ranks, p.Chunks, p.Rounds, bytes, l)
}

// A phase is rounds that can be had in any order.
type phase struct {
	count int
	at    func(i int) schedule.Round
}

func phaseOf(s schedule.Schedule) phase {
	return phase{len(s.Rounds), func(i int) schedule.Round { return s.Rounds[i] }}
}

// ringPhase is the reduce-scatter schedule.Ring, round by round.
func ringPhase(n int) phase {
	round := make(schedule.Round, n)
	return phase{n - 1, func(i int) schedule.Round {
		for r := range round {
			c := (r - i - 1 + n) % n
			round[r] = schedule.Move{From: r, To: (r + 1) % n, Src: c, Dst: c, N: 1, Reduce: true}
		}
		return round
	}}
}

// turned is a move backwards: what was reduced there goes back.
func turned(m schedule.Move) schedule.Move {
	return schedule.Move{From: m.To, To: m.From, Src: m.Dst, Dst: m.Src, N: m.N}
}
