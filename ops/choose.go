package ops

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"peermesh/ops/schedule"
)

// DefaultLinks prices schedules for ranks that share a machine or a rack: an
// encrypted stream's latency and rate on loopback. It chooses by size alone,
// the same on every rank. A Transport that knows its links, and Group.Measure, know
// better.
var DefaultLinks schedule.Links = schedule.Uniform{Delay: 100 * time.Microsecond, BytesPerSecond: 500e6}

// AlgorithmVariable is the environment variable that stands in for an empty
// Config.Algorithm.
const AlgorithmVariable = "PEERMESH_ALGO"

// laneSize is how many bytes of a chunk make another lane worth its messages.
const laneSize = 512 << 10

// autoLanes bounds the lanes that size alone asks for.
const autoLanes = 4

// A plan is a schedule as one rank runs it.
type plan struct {
	name   string
	chunks int
	rounds []round
	digest uint32
	lanes  int
}

// algorithms are the names that a Config gives: one for all operations that have
// it, and one for each operation that is named.
type algorithms struct {
	all  string
	each map[Kind]string
}

// parseAlgorithms reads "ring", or "all_reduce=ring,broadcast=tree", or both.
func parseAlgorithms(text string) (a algorithms, err error) {
	if text == "" {
		return a, nil
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("ops: algorithm %q of Config.Algorithm or %s: "+format, append([]any{text, AlgorithmVariable}, args...)...)
	}
	for item := range strings.SplitSeq(text, ",") {
		operation, name, named := strings.Cut(strings.TrimSpace(item), "=")
		if !named {
			name = operation
			if !slices.Contains(algorithmNames(kinds()...), name) {
				return a, bad("no operation has %q: want one of %s", name, strings.Join(algorithmNames(kinds()...), ", "))
			}
			if a.all != "" {
				return a, bad("%q and %q for all operations", a.all, name)
			}
			a.all = name
			continue
		}
		i := slices.IndexFunc(kinds(), func(k Kind) bool { return k.String() == operation })
		if i < 0 {
			return a, bad("%q is no operation: want one of %v", operation, kinds())
		}
		k := kinds()[i]
		if !slices.Contains(algorithmNames(k), name) {
			return a, bad("%v has no %q: want one of %s", k, name, strings.Join(algorithmNames(k), ", "))
		}
		if a.each == nil {
			a.each = make(map[Kind]string)
		}
		a.each[k] = name
	}
	return a, nil
}

// kinds are the operations that have schedules to choose from.
func kinds() []Kind { return slices.Sorted(maps.Keys(rules)) }

// algorithmNames are the names of the operations' rules, sorted, each once.
func algorithmNames(of ...Kind) (names []string) {
	for _, k := range of {
		for _, r := range rules[k] {
			names = append(names, r.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// plans chooses schedules, and keeps what it has chosen.
type plans struct {
	size, rank int
	c          Config
	named      algorithms
	err        error // of the Config

	source func() (schedule.Links, error) // of what comes with the world

	mu    sync.Mutex
	links schedule.Links // nil before they are known
	near  near           // by them
	known map[planKey]*plan
}

type planKey struct {
	kind  Kind
	root  int
	scale int // bytes, rounded up to a power of two
}

func (p *plans) init(size, rank int, c Config) {
	p.size, p.rank, p.c = size, rank, c
	p.named, _ = parseAlgorithms(c.Algorithm)
	p.err = c.check() // which has that error too
	p.relink(c.Links)
}

// relink prices by other links from now on.
func (p *plans) relink(l schedule.Links) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adopt(l)
}

// adopt is relink where the lock is held.
func (p *plans) adopt(l schedule.Links) {
	p.links, p.near, p.known = l, nearby(p.size, l), make(map[planKey]*plan)
}

// choose is the cheapest schedule for an operation on a vector of that many
// bytes: a pure function of the arguments and of what all ranks agree on, so all
// choose alike. Bytes count by powers of two, which bounds what is kept.
func (p *plans) choose(k Kind, root int, bytes int64) (*plan, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.settle(); err != nil {
		return nil, err
	}
	scale := bits.Len64(uint64(max(bytes, 1) - 1))
	key := planKey{k, root, scale}
	if known, ok := p.known[key]; ok {
		return known, nil
	}
	all, err := p.rules(k, 1<<scale)
	if err != nil {
		return nil, err
	}
	known := p.plan(p.cheapest(key, all), bytes)
	p.known[key] = known
	return known, nil
}

// coded is choose for an AllReduceCoded. It takes one shot only where the floats themselves
// would, and where blocks make less of them: to choose that by the fewer bytes that are encoded
// would give back, by sending them to all, what the codec has saved.
func (p *plans) coded(bytes, encoded int64) (*plan, error) {
	_, coded := p.named.each[KindAllReduceCoded]
	_, floats := p.named.each[KindAllReduce]
	if !coded && !floats && encoded < bytes {
		if all, err := p.choose(KindAllReduce, noRoot, bytes); err != nil || all.name == oneShot {
			return all, err
		}
	}
	return p.choose(KindAllReduceCoded, noRoot, encoded)
}

// rules are those that may decide how to do an operation.
func (p *plans) rules(k Kind, bytes int64) ([]rule, error) {
	usable := slices.DeleteFunc(slices.Clone(rules[k]), func(r rule) bool {
		return !r.allows(p.size) || p.c.Deterministic && !r.canonical()
	})
	if len(usable) == 0 {
		return nil, fmt.Errorf("ops: no schedule for %v among %d ranks: at most %d", k, p.size, schedule.MaxRanks)
	}
	name, demanded := p.named.each[k]
	if !demanded {
		name = p.named.all
	}
	named := slices.DeleteFunc(slices.Clone(usable), func(r rule) bool { return r.name != name })
	switch {
	case len(named) > 0:
		return named, nil
	case demanded && p.c.Deterministic:
		return nil, fmt.Errorf("ops: %v among %d ranks has no %q that is deterministic", k, p.size, name)
	case demanded:
		return nil, fmt.Errorf("ops: %v among %d ranks has no %q", k, p.size, name)
	}
	light := slices.DeleteFunc(slices.Clone(usable), func(r rule) bool { return r.named(bytes, p.near) })
	if len(light) == 0 {
		return usable, nil
	}
	return light, nil
}

// given prepares a schedule that a caller has chosen.
func (p *plans) given(s schedule.Schedule, bytes int64) (*plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.settle(); err != nil {
		return nil, err
	}
	return p.plan(s, bytes), nil
}

// plan prepares a schedule for this rank. The lock is held.
func (p *plans) plan(s schedule.Schedule, bytes int64) *plan {
	lanes := p.c.Lanes
	if lanes == 0 {
		lanes = lanesFor(s, 1<<bits.Len64(uint64(max(bytes, 1)-1)), p.links)
	}
	return &plan{s.Algorithm(), s.Chunks, roundsOf(s.Local(p.rank), p.rank, p.size), s.Digest()*31 + uint32(lanes), lanes}
}
