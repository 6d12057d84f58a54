package trainer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
)

// Several members die and several come, at random moments, in worlds that are busy
// with the deaths before.
func TestElasticSeeds(t *testing.T) {
	seeds := 40
	if UnderRace {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) { randomFaults(t, seed) })
	}
}

// randomFaults trains with member 0, who lives, up to three others from the start and
// two that come later, when member 0 has sent so often.
func randomFaults(t *testing.T, seed uint64) {
	const late = 2
	rng := rand.New(rand.NewPCG(seed, 8))
	a := newArena()
	first := 2 + rng.IntN(3)
	runs, errs := make([]*tally, first+late), make([]error, first+late)
	fates, comes := make([]int, len(runs)), make([]int, len(runs))
	for id := range runs {
		runs[id] = newTally(t, id)
		if id > 0 && rng.IntN(2) == 0 {
			fates[id] = 1 + rng.IntN(120)
		}
		comes[id] = 1 + rng.IntN(80)
	}
	var wg sync.WaitGroup
	start := func(m *member) {
		m.dieAt = fates[m.id]
		wg.Go(func() { errs[m.id] = runs[m.id].run(m) })
	}
	members := make([]*member, first)
	for id := range members {
		members[id] = a.join(id)
	}
	sent := 0
	members[0].onSend = func() {
		a.mu.Lock()
		sent++
		now := sent
		a.mu.Unlock()
		for id := first; id < len(runs); id++ {
			if comes[id] == now {
				start(a.join(id))
			}
		}
	}
	for _, m := range members {
		start(m)
	}
	wg.Wait()
	var alive []*tally
	for id, r := range runs {
		if errs[id] != nil && !errors.Is(errs[id], errDead) {
			t.Errorf("seed %d: %d: %v", seed, id, errs[id])
		}
		if errs[id] == nil && (id == 0 || a.metFirst(id)) {
			alive = append(alive, r)
		}
	}
	same(t, fmt.Sprintf("seed %d", seed), alive)
}
