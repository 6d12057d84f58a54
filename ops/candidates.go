package ops

import (
	"math/bits"
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// heldMost is how many bytes a rank may hold back to be added up later, where price
// alone decides.
const heldMost = 1 << 20

// An order says when a rule's sums are in the canonical order.
type order uint8

const (
	noSums  order = iota // it has none
	ordered              // always
	loose                // never
)

// A rule is one way to do an operation.
type rule struct {
	name  string // the schedule's Algorithm
	order order
	most  int             // ranks; 0: any
	power bool            // only for ranks that are a power of two
	holds bool            // parts of the vector from all others at once
	aside bool            // not for price to decide, see plans.coded
	apart bool            // for ranks of which the links show that some are near each other
	steps func(n int) int // latencies that follow each other, at least; nil: few
	build builder
}

// named reports whether the rule has to be named to be taken: it holds back more of that
// many bytes than price alone may decide, is decided elsewhere, or is for ranks that are
// apart, which these are not.
func (r rule) named(bytes int64, where near) bool {
	if r.apart {
		if _, apart := where(); !apart {
			return true
		}
	}
	return r.aside || r.holds && bytes > heldMost
}

// oneShot is the schedule in which all send their whole part to all.
const oneShot = "one-shot"

// allReduces are the ways to all-reduce.
var allReduces = append([]rule{
	{name: "doubling", order: ordered, build: anyRoot(schedule.Doubling)},
	{name: oneShot, order: ordered, most: schedule.MaxRanks, holds: true, build: anyRoot(schedule.OneShot)},
	{name: "direct", order: ordered, most: schedule.MaxRanks, holds: true, build: anyRoot(both(schedule.Direct))},
	{name: "halving", order: ordered, build: anyRoot(both(schedule.Halving))},
	{name: "bruck", order: loose, most: schedule.MaxRanks, build: anyRoot(both(schedule.Bruck))},
	{name: "cascade", order: ordered, most: schedule.MaxRanks, build: anyRoot(both(schedule.Cascade))},
	{name: "ring", order: loose, most: schedule.MaxRanks, steps: twice(around), build: anyRoot(both(schedule.Ring))},
	{name: "cycle", order: loose, most: schedule.MaxRanks, steps: twice(around), build: anyRoot(schedule.Cycle)},
	{name: "binomial", order: ordered, build: anyRoot(both(schedule.Binomial))},
	{name: "hierarchical", order: loose, build: hierarchical},
	{name: "two-level", order: loose, apart: true, most: schedule.MaxRanks, build: twoLevel(schedule.Hosts.Fewest)},
	{name: "two-level", order: loose, apart: true, most: schedule.MaxRanks, build: twoLevel(schedule.Hosts.Balanced)},
}, trees(loose, func(s schedule.Schedule, _ int) schedule.Schedule { return schedule.AllReduce(s) })...)

// rules are the ways to do each operation, the better first where price does not
// tell. Each operation has one that is bound by latency and one by bytes.
var rules = map[Kind][]rule{
	KindAllReduce:      allReduces,
	KindAllReduceCoded: encodable(allReduces),

	KindReduceScatter: {
		{name: "direct", order: ordered, most: schedule.MaxRanks, holds: true, build: anyRoot(schedule.Direct)},
		{name: "halving", order: ordered, power: true, build: anyRoot(schedule.Halving)},
		{name: "bruck", order: loose, most: schedule.MaxRanks, build: anyRoot(schedule.Bruck)},
		{name: "cascade", order: ordered, most: schedule.MaxRanks, build: anyRoot(schedule.Cascade)},
		{name: "ring", order: loose, most: schedule.MaxRanks, steps: around, build: anyRoot(schedule.Ring)},
		{name: "two-level", order: loose, apart: true, most: schedule.MaxRanks, build: twoLevelScatter},
	},
	KindAllGather: {
		{name: "direct", most: schedule.MaxRanks, build: anyRoot(reversed(schedule.Direct))},
		{name: "halving", power: true, build: anyRoot(reversed(schedule.Halving))},
		{name: "bruck", most: schedule.MaxRanks, build: anyRoot(reversed(schedule.Bruck))},
		{name: "ring", most: schedule.MaxRanks, steps: around, build: anyRoot(reversed(schedule.Ring))},
		{name: "two-level", apart: true, most: schedule.MaxRanks, build: backwards(twoLevelScatter)},
	},
	KindReduce: append([]rule{
		{name: "binomial", order: ordered, build: to(schedule.BinomialTo)},
		{name: "direct", order: ordered, most: schedule.MaxRanks, holds: true, build: then(schedule.Reduce, schedule.Direct)},
		{name: "bruck", order: loose, most: schedule.MaxRanks, build: then(schedule.Reduce, schedule.Bruck)},
		{name: "cascade", order: ordered, most: schedule.MaxRanks, build: then(schedule.Reduce, schedule.Cascade)},
		{name: "ring", order: loose, most: schedule.MaxRanks, steps: around, build: then(schedule.Reduce, schedule.Ring)},
		{name: "two-level", order: loose, apart: true, most: schedule.MaxRanks, build: twoLevelTo(schedule.BinomialTo)},
		{name: "two-level", order: loose, apart: true, most: schedule.MaxRanks, build: twoLevelTo(largeTo)},
	}, trees(loose, schedule.Schedule.Rotate)...),

	KindBroadcast: append([]rule{
		{name: "binomial", build: to(func(n, root int) schedule.Schedule { return schedule.BinomialTo(n, root).Reverse() })},
		{name: "direct", most: schedule.MaxRanks, build: then(schedule.Broadcast, schedule.Direct)},
		{name: "bruck", most: schedule.MaxRanks, build: then(schedule.Broadcast, schedule.Bruck)},
		{name: "ring", most: schedule.MaxRanks, steps: around, build: then(schedule.Broadcast, schedule.Ring)},
		{name: "two-level", apart: true, most: schedule.MaxRanks, build: backwards(twoLevelTo(schedule.BinomialTo))},
		{name: "two-level", apart: true, most: schedule.MaxRanks, build: backwards(twoLevelTo(largeTo))},
	}, trees(noSums, func(s schedule.Schedule, root int) schedule.Schedule { return s.Reverse().Rotate(root) })...),

	KindGather: {
		{name: "direct", build: rotated(schedule.DirectGather)},
		{name: "binomial", build: rotated(schedule.BinomialGather)},
	},
	KindScatter: {
		{name: "direct", build: rotated(reversed(schedule.DirectGather))},
		{name: "binomial", build: rotated(reversed(schedule.BinomialGather))},
	},
	KindAllToAll: {
		{name: "direct", most: schedule.MaxRanks, build: anyRoot(schedule.DirectAllToAll)},
		{name: "bruck", most: schedule.MaxRanks, build: anyRoot(schedule.BruckAllToAll)},
		{name: "pairwise", most: schedule.MaxRanks, steps: half, build: anyRoot(schedule.Pairwise)},
	},
	KindBarrier: {
		{name: "dissemination", build: anyRoot(schedule.Dissemination)},
		{name: oneShot, most: schedule.MaxRanks, build: anyRoot(schedule.OneShot)},
	},
	// Where a rank does not know the others' counts, nothing can be passed on.
	KindGatherList:  {{name: "direct", build: rotated(schedule.DirectGather)}},
	KindScatterList: {{name: "direct", build: rotated(reversed(schedule.DirectGather))}},
	KindAllToAllV: {
		{name: "direct", most: schedule.MaxRanks, build: anyRoot(schedule.DirectAllToAll)},
		{name: "pairwise", most: schedule.MaxRanks, steps: half, build: anyRoot(schedule.Pairwise)},
	},
}

type (
	generator func(n int) schedule.Schedule
	builder   func(n, root int, where near) schedule.Schedule
)

func around(n int) int { return n - 1 }

func half(n int) int { return n / 2 }

func twice(f func(n int) int) func(n int) int { return func(n int) int { return 2 * f(n) } }

func anyRoot(g generator) builder {
	return func(n, _ int, _ near) schedule.Schedule { return g(n) }
}

func to(f func(n, root int) schedule.Schedule) builder {
	return func(n, root int, _ near) schedule.Schedule { return f(n, root) }
}

func rotated(g generator) builder {
	return func(n, root int, _ near) schedule.Schedule { return g(n).Rotate(root) }
}

func reversed(g generator) generator {
	return func(n int) schedule.Schedule { return g(n).Reverse() }
}

func both(g generator) generator {
	return func(n int) schedule.Schedule { return schedule.AllReduce(g(n)) }
}

func then(f func(schedule.Schedule, int) schedule.Schedule, g generator) builder {
	return func(n, root int, _ near) schedule.Schedule { return f(g(n), root) }
}

// encodable are the rules in which a rank that sends its part of a chunk has no more to do
// with it until it gets the sum, or sends it to all and gets all of theirs: so that a part is
// encoded once.
func encodable(all []rule) []rule {
	rules := slices.DeleteFunc(slices.Clone(all), func(r rule) bool { return r.name == "doubling" })
	for i := range rules {
		rules[i].aside = rules[i].name == oneShot
	}
	return rules
}

// trees are pipelines of several depths, of which price takes the best for the
// bytes: the more chunks, the more latencies and the less waiting for bytes.
func trees(o order, f func(s schedule.Schedule, root int) schedule.Schedule) (all []rule) {
	for _, chunks := range []int{8, 32, 128} {
		all = append(all, rule{name: "tree", order: o, build: func(n, root int, _ near) schedule.Schedule {
			return f(schedule.Tree(n, chunks), root)
		}})
	}
	return all
}

// hierarchical has islands of near ranks reduce among themselves first.
func hierarchical(_, _ int, where near) schedule.Schedule {
	groups, _ := where()
	return schedule.Hierarchical(groups, both(schedule.Halving))
}

// twoLevel has all ranks of an island reduce among themselves, and each its part with
// other islands.
func twoLevel(parts func(schedule.Hosts) int) builder {
	return func(_, _ int, where near) schedule.Schedule {
		h, _ := where()
		return schedule.Hosts(h).AllReduce(parts(h), schedule.Bruck, both(schedule.Bruck))
	}
}

func twoLevelScatter(_, _ int, where near) schedule.Schedule {
	h, _ := where()
	return schedule.Hosts(h).ReduceScatter(schedule.Bruck, schedule.Bruck)
}

func twoLevelTo(across func(n, root int) schedule.Schedule) builder {
	return func(_, root int, where near) schedule.Schedule {
		groups, _ := where()
		h := schedule.Hosts(groups)
		return h.Reduce(root, h.Balanced(), schedule.Bruck, across)
	}
}

// largeTo is a reduce for many bytes.
func largeTo(n, root int) schedule.Schedule { return schedule.Reduce(schedule.Bruck(n), root) }

func backwards(b builder) builder {
	return func(n, root int, where near) schedule.Schedule { return b(n, root, where).Reverse() }
}

// allows reports whether the rule is for n ranks.
func (r rule) allows(n int) bool {
	return (r.most == 0 || n <= r.most) && (!r.power || isPower(n))
}

// canonical reports whether sums, if there are any, are in the canonical order.
func (r rule) canonical() bool { return r.order <= ordered }

func isPower(n int) bool { return bits.OnesCount(uint(n)) == 1 }

// A Candidate is a schedule and what it is expected to take.
type Candidate struct {
	Schedule  schedule.Schedule
	Price     time.Duration
	Canonical bool // what Config.Deterministic may choose
	Named     bool // taken only when it is named, whatever its price
}

// Candidates are the schedules that a group of n ranks chooses from for an
// operation on a vector of that many bytes (all ranks' parts together, where there
// are parts), the cheapest first; root is a rank of the group and counts where the
// operation has one. None are for an operation that has no schedule.
//
// The price is schedule.Price and, for the busiest rank, 30 µs, or the link's latency if
// that is less, for each message that it sends or receives, and up to two round trips for each
// time that it turns to another peer over a distant link. A group does not take by itself what
// holds back more than 1 MiB on the way, or has two levels where the links show no islands
// of near ranks; nor by its price one shot of what is encoded, see Group.AllReduceCoded (Named).
// Config.Algorithm names.
func Candidates(k Kind, n, root int, bytes int64, l schedule.Links) []Candidate {
	return priced(rules[k], n, root, bytes, l)
}
