package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// compute averages a gradient that depends on weight, sample and random number.
func (r *tally) compute(ctx context.Context, g *ops.Group, s Share) error {
	clear(r.grad)
	clear(r.hits)
	r.random.n++
	r.mean[0] = r.mean[0]*0.9 + float32(s.Total) // what a failed step must undo
	for _, i := range s.Indices {
		r.hits[int(s.Epoch)*tallySamples+i]++
		r.grad[0] += (r.w[0] - float32(i)/7) / float32(len(s.Indices))
		r.grad[1] += float32(math.Sin(float64(i)+float64(r.random.n))) / float32(len(s.Indices))
	}
	for i := range r.grad {
		r.grad[i] *= float32(s.Weight())
	}
	for _, x := range []tensor.Tensor{tensor.Of(r.grad), tensor.Of(r.hits)} {
		if err := g.AllReduce(ctx, x, tensor.Sum).Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (r *tally) update() error {
	for i := range r.w {
		r.velocity[i] = r.velocity[i]*0.5 + r.grad[i]
		r.w[i] -= 0.1 * r.velocity[i]
	}
	for i, n := range r.hits {
		r.count[i] += n
	}
	return nil
}

// run trains in an arena until the end or death.
func (r *tally) run(m *member) error {
	r.member = m
	var g *ops.Group
	r.elastic.Begin = func(_ context.Context, group *ops.Group) error { g = group; return nil }
	r.elastic.Compute = func(ctx context.Context, s Share) error { return r.compute(ctx, g, s) }
	update := r.elastic.Update
	r.elastic.Update = func() error {
		err := update()
		m.took()
		return err
	}
	err := r.elastic.Run(context.Background(), m)
	m.leave()
	return err
}

// same checks that all have finished with one state, in which every sample has
// counted once an epoch.
func same(t *testing.T, what string, runs []*tally) {
	t.Helper()
	var first sum
	for i, r := range runs {
		l, err := r.elastic.State.label()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = l.hash()
		}
		if l.hash() != first {
			t.Errorf("%s: survivors 0 and %d differ: %v and %v", what, i, runs[0].w, r.w)
		}
		if m := r.member; m.carried == 0 || m.advanced == 0 && m.world.taken > 1 || m.early > 0 {
			t.Errorf("%s: survivor %d: %d worlds were told that it had what the run had done, %d that all had got on, %d of these too early",
				what, i, m.carried, m.advanced, m.early)
		}
		if r.elastic.State.Epoch != tallyEpochs {
			t.Errorf("%s: survivor %d is at %v", what, i, r.elastic.State.Progress)
		}
		for k, n := range r.count {
			if n != 1 {
				t.Errorf("%s: survivor %d: sample %d of epoch %d counted %d times", what, i, k%tallySamples, k/tallySamples, n)
			}
		}
	}
}

// trial runs members until all have ended, one of them dying before its k-th
// send, and another coming when one of the first has sent so often. It returns how
// often the victim sent.
func trial(t *testing.T, members, victim, k, joinAt int) int {
	t.Helper()
	sends := 0
	synctest.Test(t, func(t *testing.T) {
		a := newArena()
		var wg sync.WaitGroup
		var runs []*tally
		var ms []*member
		errs := make([]error, members+1)
		for id := range members {
			ms = append(ms, a.join(id))
			runs = append(runs, newTally(t, id))
		}
		ms[victim].dieAt = k
		if joinAt > 0 {
			late := newTally(t, 77)
			runs = append(runs, late)
			bystander := ms[(victim+1)%members]
			n := 0
			bystander.onSend = func() {
				a.mu.Lock()
				n++
				now := n == joinAt
				a.mu.Unlock()
				if now {
					m := a.join(members)
					wg.Go(func() { errs[members] = late.run(m) })
				}
			}
		}
		for id := range members {
			wg.Go(func() { errs[id] = runs[id].run(ms[id]) })
		}
		wg.Wait()
		sends = ms[victim].sends
		var alive []*tally
		for id, r := range runs {
			switch {
			case id == victim && errors.Is(errs[id], errDead):
			case errs[id] != nil:
				t.Errorf("%d members, %d dies at %d: %d: %v", members, victim, k, id, errs[id])
			case id < members || ms[0].arena.metFirst(id):
				alive = append(alive, r)
			}
		}
		same(t, fmt.Sprintf("%d members, %d dies at %d, one joins at %d", members, victim, k, joinAt), alive)
	})
	return sends
}

// Every rank dies before each of its messages, in whatever phase that is. The rest
// finish, alike, and no sample is lost or counted twice.
func TestElasticOutlivesEveryMessage(t *testing.T) {
	for members := 2; members <= 4; members++ {
		for victim := range members {
			if testing.Short() && victim != members/2 {
				continue
			}
			stride := members - 1 // two: every message; more: there are enough of them
			if UnderRace {
				stride *= 4
			}
			for k := 1; !t.Failed(); k += stride {
				if trial(t, members, victim, k, 0) < k {
					break // it got through without
				}
			}
		}
	}
}

func TestElasticLetsNewcomersIn(t *testing.T) {
	for joinAt := 1; joinAt < 60 && !t.Failed(); joinAt += 4 {
		trial(t, 3, 1, 0, joinAt)
		trial(t, 3, 2, 2*joinAt, joinAt)
	}
}

// A rank's own error ends its run and the world, and not the others' run.
func TestElasticOwnErrors(t *testing.T) {
	own := errors.New("the disk is on fire")
	for name, breaks := range map[string]func(r *tally){
		"update": func(r *tally) {
			update := r.elastic.Update
			r.elastic.Update = func() error {
				if r.elastic.State.Step == 3 {
					return own
				}
				return update()
			}
		},
		"after step": func(r *tally) {
			r.elastic.AfterStep = func(context.Context, *ops.Group) error {
				if r.elastic.State.Step == 3 {
					return own
				}
				return nil
			}
		},
		"epoch end":    func(r *tally) { r.elastic.EpochEnd = func(context.Context, *ops.Group) error { return own } },
		"update epoch": func(r *tally) { r.elastic.UpdateEpoch = func() error { return own } },
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newArena()
			var wg sync.WaitGroup
			runs, errs := []*tally{newTally(t, 0), newTally(t, 1), newTally(t, 2)}, make([]error, 3)
			breaks(runs[1])
			var causes []error
			runs[0].elastic.Ended = func(err error) { causes = append(causes, err) }
			ms := []*member{a.join(0), a.join(1), a.join(2)}
			for id := range runs {
				wg.Go(func() { errs[id] = runs[id].run(ms[id]) })
			}
			wg.Wait()
			if !errors.Is(errs[1], own) {
				t.Errorf("%s: %v", name, errs[1])
			}
			if errs[0] != nil || errs[2] != nil || len(causes) != 1 || !errors.Is(causes[0], own) {
				t.Errorf("%s: the others: %v, %v; causes %v", name, errs[0], errs[2], causes)
			}
			same(t, name, []*tally{runs[0], runs[2]})
		})
	}
}

// A panic goes on where it happened; the others hear of it.
func TestElasticPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena()
		runs := []*tally{newTally(t, 0), newTally(t, 1)}
		var cause error
		runs[0].elastic.Ended = func(err error) { cause = err }
		runs[1].elastic.Update = func() error { panic("out of cheese") }
		ms := []*member{a.join(0), a.join(1)}
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { err = runs[0].run(ms[0]) })
		wg.Go(func() {
			defer ms[1].kill()
			defer func() {
				if p := recover(); p != "out of cheese" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = runs[1].run(ms[1])
		})
		wg.Wait()
		if err != nil || cause == nil || !strings.Contains(cause.Error(), "out of cheese") {
			t.Errorf("the other: %v, %v", err, cause)
		}
	})
}

// The end of the context ends the world, for its cause.
func TestElasticStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(context.Background())
		a := newArena()
		r := newTally(t, 0)
		m := a.join(0)
		var g *ops.Group
		r.elastic.Begin = func(_ context.Context, group *ops.Group) error { g = group; return nil }
		r.elastic.Compute = func(ctx context.Context, s Share) error {
			if s.Step == 2 {
				cancel(stop)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return r.compute(ctx, g, s)
		}
		if err := r.elastic.Run(ctx, m); !errors.Is(err, stop) {
			t.Error(err)
		}
		if r.elastic.State.Step != 2 || r.random.n != 2 {
			t.Errorf("at %v, after %d draws", r.elastic.State.Progress, r.random.n)
		}
		if cause := context.Cause(m.world.Context()); !errors.Is(cause, stop) {
			t.Errorf("the world ended for %v", cause)
		}
	})
}

func TestElasticChecks(t *testing.T) {
	for says, spoil := range map[string]func(e *Elastic){
		"needed":     func(e *Elastic) { e.Update = nil },
		"negative":   func(e *Elastic) { e.Steps = -1 },
		"no samples": func(e *Elastic) { e.Sampler, _ = NewElasticSampler(0, ElasticConfig{Batch: 1}) },
	} {
		r := newTally(t, 0)
		r.elastic.Compute = func(context.Context, Share) error { return nil }
		spoil(r.elastic)
		if err := r.elastic.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
