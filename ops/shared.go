package ops

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"

	"peermesh/ops/schedule"
)

const (
	// sharedRanks is how many ranks a group has at most for its choices to be shared: of a
	// larger one a process seldom has many, and its schedules are long.
	sharedRanks = 16
	// sharedMost is how many choices a process keeps to share. The longest schedule among
	// that many ranks, a tree of 128 chunks, is of 200 KB.
	sharedMost = 32
)

// A question is all that a choice of schedule follows from.
type question struct {
	planKey
	size          int
	deterministic bool
	algorithm     string
	links         [sha256.Size]byte
}

// Ranks of one process ask the same question, each for itself, and so do worlds that
// follow each other. To build and to price a dozen schedules is much of what a small world
// of short life costs, and so who asks first answers for all. A schedule never changes.
var chosen choices

// choices keeps answers by their questions. It forgets all when it has sharedMost.
type choices struct {
	mu    sync.Mutex
	known map[question]func() schedule.Schedule
}

// answer is what find returns for the question, found once by whoever asks first. The
// others wait for it, as long as it would take each of them.
func (c *choices) answer(q question, find func() schedule.Schedule) schedule.Schedule {
	c.mu.Lock()
	known, ok := c.known[q]
	if !ok {
		if c.known == nil || len(c.known) >= sharedMost {
			c.known = make(map[question]func() schedule.Schedule)
		}
		known = sync.OnceValue(find)
		c.known[q] = known
	}
	c.mu.Unlock()
	return known()
}

// cheapest is the cheapest of the rules, which may be known in this process already. The
// lock is held.
func (p *plans) cheapest(key planKey, all []rule) schedule.Schedule {
	find := func() schedule.Schedule {
		return cheapest(all, p.size, max(key.root, 0), 1<<key.scale, p.links, p.near)
	}
	if p.size > sharedRanks || len(all) == 1 {
		return find()
	}
	q := question{key, p.size, p.c.Deterministic, p.c.Algorithm, figures(p.size, p.links)}
	return chosen.answer(q, find)
}

// figures are all that n ranks' links tell, as a digest that nobody can make alike for
// others, since they may be what peers have said.
func figures(n int, l schedule.Links) [sha256.Size]byte {
	located, _ := l.(Located)
	shared, _ := l.(Shared)
	p := make([]byte, 0, n*n*16)
	add := func(v uint64) { p = binary.LittleEndian.AppendUint64(p, v) }
	for a := range n {
		for b := range n {
			if a != b {
				add(uint64(l.Latency(a, b)))
				add(math.Float64bits(l.Rate(a, b)))
			}
		}
		if located != nil {
			add(uint64(located.Host(a)))
		}
		if shared != nil {
			add(math.Float64bits(shared.Share(a)))
		}
	}
	return sha256.Sum256(p)
}
