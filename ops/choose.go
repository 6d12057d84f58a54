package ops

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"peermesh/ops/schedule"
)

// DefaultLinks prices schedules for ranks that share a machine or a rack: an
// encrypted stream's latency and rate on loopback. It chooses by size alone,
// the same on every rank.
var DefaultLinks schedule.Links = schedule.Uniform{Delay: 100 * time.Microsecond, BytesPerSecond: 500e6}

// laneSize is how many bytes of a chunk make another lane worth its messages.
const laneSize = 256 << 10

// autoLanes bounds the lanes that size alone asks for.
const autoLanes = 4

// A plan is a schedule as one rank runs it.
type plan struct {
	schedule schedule.Schedule
	local    []schedule.Round
	digest   uint32
	lanes    int
}

// candidates are the schedules of an operation among n ranks, by name. Those
// with a root have it at 0; others rotate.
func candidates(k Kind, n int) []schedule.Schedule {
	square := n <= schedule.MaxRanks      // the ring's moves are n²
	power := bits.OnesCount(uint(n)) == 1 // halving leaves chunk r on rank r
	var all []schedule.Schedule
	add := func(ok bool, s func() schedule.Schedule) {
		if ok {
			all = append(all, s())
		}
	}
	switch k {
	case KindAllReduce:
		add(true, func() schedule.Schedule { return schedule.Doubling(n) })
		add(true, func() schedule.Schedule { return schedule.AllReduce(schedule.Halving(n)) })
		add(square, func() schedule.Schedule { return schedule.AllReduce(schedule.Ring(n)) })
		add(true, func() schedule.Schedule { return schedule.AllReduce(schedule.Binomial(n)) })
	case KindReduceScatter:
		add(power, func() schedule.Schedule { return schedule.Halving(n) })
		add(square, func() schedule.Schedule { return schedule.Ring(n) })
	case KindAllGather:
		add(power, func() schedule.Schedule { return schedule.Halving(n).Reverse() })
		add(square, func() schedule.Schedule { return schedule.Ring(n).Reverse() })
	case KindReduce:
		add(true, func() schedule.Schedule { return schedule.Binomial(n) })
	case KindBroadcast:
		add(true, func() schedule.Schedule { return schedule.Binomial(n).Reverse() })
	case KindBarrier:
		add(true, func() schedule.Schedule { return schedule.Dissemination(n) })
	}
	return all
}

// plans chooses schedules, and keeps what it has chosen.
type plans struct {
	size, rank int
	c          Config

	mu    sync.Mutex
	known map[planKey]plan
}

type planKey struct {
	kind  Kind
	root  int
	scale int // bytes, rounded up to a power of two
}

func (p *plans) init(size, rank int, c Config) {
	p.size, p.rank, p.c = size, rank, c
	p.known = make(map[planKey]plan)
}

// choose is the cheapest schedule for an operation on a vector of that many
// bytes: a pure function of the arguments and of what all ranks agree on, so all
// choose alike. Bytes count by powers of two, which bounds what is kept.
func (p *plans) choose(k Kind, root int, bytes int64) (plan, error) {
	if err := p.c.check(); err != nil {
		return plan{}, err
	}
	scale := bits.Len64(uint64(max(bytes, 1) - 1))
	key := planKey{k, root, scale}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[key]; ok {
		return known, nil
	}
	all := candidates(k, p.size)
	if name := p.c.Algorithm; name != "" && len(all) > 1 {
		i := slices.IndexFunc(all, func(s schedule.Schedule) bool { return algorithm(s) == name })
		if i < 0 {
			return plan{}, fmt.Errorf("ops: %v among %d ranks has no algorithm %q: want %s", k, p.size, name, algorithms(all))
		}
		all = all[i : i+1]
	}
	if len(all) == 0 {
		return plan{}, fmt.Errorf("ops: no schedule for %v among %d ranks: at most %d", k, p.size, schedule.MaxRanks)
	}
	best := slices.MinFunc(all, func(s, t schedule.Schedule) int {
		return cmp.Compare(schedule.Price(s, 1<<scale, p.c.Links), schedule.Price(t, 1<<scale, p.c.Links))
	})
	if root > 0 {
		best = best.On(p.size, rotation(p.size, root))
	}
	known := p.plan(best, bytes)
	p.known[key] = known
	return known, nil
}

// plan prepares a schedule for this rank.
func (p *plans) plan(s schedule.Schedule, bytes int64) plan {
	lanes := p.c.Lanes
	if lanes == 0 {
		scale := int64(1) << bits.Len64(uint64(max(bytes, 1)-1))
		lanes = int(min(max(scale/int64(s.Chunks)/laneSize, 1), autoLanes))
	}
	return plan{schedule: s, local: s.Local(p.rank), digest: s.Digest()*31 + uint32(lanes), lanes: lanes}
}

// rotation puts root where a schedule has rank 0, and the others after it.
func rotation(n, root int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = (root + i) % n
	}
	return ranks
}

// algorithm is the name by which Config.Algorithm asks for a schedule: that of
// the generator, without what the combinators put around it.
func algorithm(s schedule.Schedule) string {
	name := strings.NewReplacer("all-reduce(", "", "reverse(", "", ")", "").Replace(s.Name)
	name, _, _ = strings.Cut(name, ";")
	return name
}

func algorithms(all []schedule.Schedule) string {
	var names []string
	for _, s := range all {
		names = append(names, algorithm(s))
	}
	return strings.Join(names, ", ")
}
