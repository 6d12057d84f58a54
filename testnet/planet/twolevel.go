package planet

import (
	"slices"

	"peermesh/ops/schedule"
)

// A twoLevel all_reduce has every region scatter sums among p of its ranks, p being as
// many as the smallest region has to offer; each of the p parts is all_reduced by the
// ranks that have it, one in each region; and regions gather the parts. Ranks beyond p
// fold onto others before, and hear the result after. No byte crosses between two
// regions that could do without, and all ports of a region cross side by side.
type twoLevel struct {
	name   string
	ranks  int
	groups [][]int
	parts  int               // p
	inside phase             // p ranks, p parts, part i whole on rank i
	across schedule.Schedule // an all_reduce of as many ranks as there are groups
	round  schedule.Round    // used again and again
}

// halvingLevels reduces inside regions by halving: few rounds.
func halvingLevels(groups [][]int, ranks int) Plan {
	p := 1
	for p*2 <= smallest(groups) {
		p *= 2
	}
	return (&twoLevel{name: "two levels, halving", ranks: ranks, groups: groups, parts: p, inside: phaseOf(schedule.Halving(p)),
		across: schedule.AllReduce(schedule.Halving(len(groups)))}).plan()
}

// ringLevels reduces inside regions around rings: the fewest bytes.
func ringLevels(groups [][]int, ranks int) Plan {
	p := smallest(groups)
	return (&twoLevel{name: "two levels, rings", ranks: ranks, groups: groups, parts: p, inside: ringPhase(p),
		across: schedule.AllReduce(schedule.Halving(len(groups)))}).plan()
}

func smallest(groups [][]int) int {
	return len(slices.MinFunc(groups, func(a, b []int) int { return len(a) - len(b) }))
}

func (t *twoLevel) plan() Plan {
	p := Plan{Name: t.name, Ranks: t.ranks, Chunks: t.parts * t.across.Chunks, Rounds: t.rounds}
	for round := range t.rounds {
		p.Moves += len(round)
	}
	return p
}

// rounds yields those of all three steps.
func (t *twoLevel) rounds(yield func(schedule.Round) bool) {
	same := func(m schedule.Move) schedule.Move { return m }
	folds := (len(slices.MaxFunc(t.groups, func(a, b []int) int { return len(a) - len(b) }))+t.parts-1)/t.parts - 1
	for i := range folds {
		if !yield(t.fold(i, same)) {
			return
		}
	}
	for i := range t.inside.count {
		if !yield(t.within(i, same)) {
			return
		}
	}
	for _, round := range t.across.Rounds {
		if !yield(t.between(round)) {
			return
		}
	}
	for i := range t.inside.count {
		if !yield(t.within(t.inside.count-1-i, turned)) {
			return
		}
	}
	for i := range folds {
		if !yield(t.fold(folds-1-i, turned)) {
			return
		}
	}
}

// fold has the i-th p ranks beyond the first p send all they have to those.
func (t *twoLevel) fold(i int, turn func(schedule.Move) schedule.Move) schedule.Round {
	t.round = t.round[:0]
	for _, g := range t.groups {
		for k := (i + 1) * t.parts; k < min(len(g), (i+2)*t.parts); k++ {
			t.round = append(t.round, turn(schedule.Move{From: g[k], To: g[k%t.parts], N: t.parts * t.across.Chunks, Reduce: true}))
		}
	}
	return t.round
}

// within is the i-th round inside all regions.
func (t *twoLevel) within(i int, turn func(schedule.Move) schedule.Move) schedule.Round {
	t.round = t.round[:0]
	q := t.across.Chunks
	for _, m := range t.inside.at(i) {
		m = turn(m)
		for _, g := range t.groups {
			t.round = append(t.round, schedule.Move{From: g[m.From], To: g[m.To], Src: m.Src * q, Dst: m.Dst * q, N: m.N * q, Reduce: m.Reduce})
		}
	}
	return t.round
}

// between is a round among the ranks of each part.
func (t *twoLevel) between(round schedule.Round) schedule.Round {
	t.round = t.round[:0]
	for part := range t.parts {
		at := part * t.across.Chunks
		for _, m := range round {
			m.From, m.To, m.Src, m.Dst = t.groups[m.From][part], t.groups[m.To][part], m.Src+at, m.Dst+at
			t.round = append(t.round, m)
		}
	}
	return t.round
}
