package main

import (
	"fmt"
	"strconv"
	"strings"

	"peermesh/ops"
	"peermesh/ops/schedule"
)

// A collective is one operation as schedule.Check and a person know it.
type collective struct {
	kind     ops.Kind
	contract func(root int) schedule.Contract
	promise  string // the contract in words; ROOT stands for the rank
	sums     bool   // it adds up, so it has an order of adding up
	carries  bool   // it moves elements
}

// collectives are those with schedules to choose from, by their names on the
// command line.
var collectives = map[string]collective{
	"all-reduce": {ops.KindAllReduce, rootless(schedule.AllReduceContract),
		"every rank ends with the sum, each rank's part in it once, added up in one order", true, true},
	"reduce-scatter": {ops.KindReduceScatter, rootless(schedule.ReduceScatterContract),
		"rank r ends with the sum of block r, each rank's part in it once", true, true},
	"all-gather": {ops.KindAllGather, rootless(schedule.AllGatherContract),
		"every rank ends with block r of rank r, for every r", false, true},
	"broadcast": {ops.KindBroadcast, schedule.BroadcastContract,
		"every rank ends with what rank ROOT has", false, true},
	"reduce": {ops.KindReduce, schedule.ReduceContract,
		"rank ROOT ends with the sum, each rank's part in it once", true, true},
	"gather": {ops.KindGather, schedule.GatherContract,
		"rank ROOT ends with block r of rank r, for every r", false, true},
	"scatter": {ops.KindScatter, schedule.ScatterContract,
		"rank r ends with block r of rank ROOT", false, true},
	"all-to-all": {ops.KindAllToAll, rootless(schedule.AllToAllContract),
		"block p of rank r ends as what was block r of rank p", false, true},
	"barrier": {ops.KindBarrier, rootless(schedule.BarrierContract),
		"every rank has heard of every rank", false, false},
}

func rootless(c schedule.Contract) func(int) schedule.Contract {
	return func(int) schedule.Contract { return c }
}

// rooted reports whether one rank is unlike the others.
func (c collective) rooted() bool { return strings.Contains(c.promise, "ROOT") }

const (
	// readable is the most ranks whose order of adding up fits a line.
	readable = 16
	// maxOrdered is the most ranks for which that order is proved, too: of each candidate
	// it takes time that grows with their square.
	maxOrdered = 256
)

// prove has a candidate checked, and says what is certain then.
func (c collective) prove(s ops.Candidate, root int) (string, error) {
	contract, order := c.contract(root), ""
	if n := s.Schedule.Ranks; c.sums && s.Canonical && n <= maxOrdered {
		contract, order = contract.Canonical(), ", the canonical one"
		if n <= readable {
			order += ": " + schedule.CanonicalOrder(n)
		}
	}
	if err := schedule.Check(s.Schedule, contract); err != nil {
		return "", err
	}
	return strings.ReplaceAll(c.promise, "ROOT", strconv.Itoa(root)) + order, nil
}

// busiest is how many of so many bytes the rank sends that sends most.
func busiest(s schedule.Schedule, bytes int64) int64 {
	sent, most := make([]int, s.Ranks), 0
	for _, round := range s.Rounds {
		for _, m := range round {
			sent[m.From] += m.N
			most = max(most, sent[m.From])
		}
	}
	return int64(float64(most) / float64(s.Chunks) * float64(bytes))
}

// moves counts them, of all rounds.
func moves(s schedule.Schedule) (n int) {
	for _, round := range s.Rounds {
		n += len(round)
	}
	return n
}

// summary is a schedule that is too large to print.
func summary(s schedule.Schedule) string {
	return fmt.Sprintf("%s: %d ranks, %d chunks, %d rounds, %d moves; --algorithm %s prints them\n",
		s.Name, s.Ranks, s.Chunks, len(s.Rounds), moves(s), s.Algorithm())
}
