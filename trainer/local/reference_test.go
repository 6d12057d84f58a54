package local

import (
	"errors"
	"fmt"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

const innerRate = 0.2

// reference trains all ranks in one place, by the formulas of the guide on plain slices.
// It knows parts only as ranges of w and b together.
func reference(p plan, ranks, steps int, finish bool) [][]float64 {
	pupils := make([]*pupil, ranks)
	live := make([][]float64, ranks)
	for r := range pupils {
		pupils[r] = newPupil(tensor.Float64, r)
		live[r] = make([]float64, outputs*inputs+outputs)
	}
	n := len(live[0])
	anchor, momentum := make([]float64, n), make([]float64, n)
	flight := map[int]func(){} // by the step at which it lands
	outer := func(lo, hi int, keep float64, sent [][]float64) {
		for i := lo; i < hi; i++ {
			d := 0.0
			for r := range live {
				d += (anchor[i] - sent[r][i]) / float64(ranks)
			}
			momentum[i] = p.momentum*momentum[i] + d
			anchor[i] -= p.rate * (d + p.momentum*momentum[i])
			for r := range live {
				live[r][i] = keep*live[r][i] + (1-keep)*anchor[i]
			}
		}
	}
	copies := func() (all [][]float64) {
		for r := range live {
			all = append(all, append([]float64(nil), live[r]...))
		}
		return all
	}
	for step := 1; step <= steps; step++ {
		grads := make([][]float64, ranks)
		for r, u := range pupils {
			copy(elements[float64](u.w.Value), live[r])
			copy(elements[float64](u.b.Value), live[r][outputs*inputs:])
			u.step()
			grads[r] = append(append([]float64(nil), elements[float64](u.w.Grad)...), elements[float64](u.b.Grad)...)
		}
		warm := step <= int(p.warmup)
		for r := range live {
			for i := range live[r] {
				g := grads[r][i]
				if warm {
					g = 0
					for _, other := range grads {
						g += other[i] / float64(ranks)
					}
				}
				live[r][i] -= innerRate * g
			}
		}
		if warm {
			copy(anchor, live[0])
			continue
		}
		if p.pairs && step%int(p.every) == 0 {
			sent := copies()
			flight[step+int(p.delay)] = func() {
				for r := range live {
					with := partner(p.seed, int64(step), r, ranks)
					for i := range live[r] {
						live[r][i] += (sent[with][i] - sent[r][i]) / 2
					}
				}
			}
		}
		for k := range p.parts {
			if p.pairs || (step-int(p.warmup)+k*int(p.every)/p.parts)%int(p.every) != 0 {
				continue
			}
			sent, before := copies(), flight[step+int(p.delay)]
			flight[step+int(p.delay)] = func() {
				if before != nil {
					before()
				}
				outer(n*k/p.parts, n*(k+1)/p.parts, p.keep, sent)
			}
		}
		if f := flight[step]; f != nil {
			f()
		}
	}
	if finish {
		outer(0, n, 0, copies())
	}
	return live
}

// train is the same on a group, and returns every rank's model.
func train(t *testing.T, m Method, ranks, steps int, finish bool) (models [][]float64, sent int64) {
	t.Helper()
	worlds := memnet.New(ranks)
	models = make([][]float64, ranks)
	anchors := make([][]string, ranks)
	noErrors(t, onEach(worlds, func(g *ops.Group) error {
		u := newPupil(tensor.Float64, g.Rank())
		if g.Rank() > 0 {
			elements[float64](u.b.Value)[0] = 7 // rank 0's counts
		}
		r, err := New(m, u.params())
		if err != nil {
			return err
		}
		ddp, err := trainer.NewDDP(t.Context(), g, u.params(), trainer.DDPConfig{Synced: true})
		sgd, e := trainer.NewSGD(u.params(), trainer.SGDConfig{LR: innerRate})
		if err := errors.Join(err, e, r.Begin(t.Context(), g)); err != nil {
			return err
		}
		for range steps {
			u.step()
			if r.Warm() {
				ddp.Ready(1)
				ddp.Ready(0)
				err = ddp.Wait()
			}
			if err := errors.Join(err, sgd.Step(), r.Step()); err != nil {
				return err
			}
			anchors[g.Rank()] = append(anchors[g.Rank()], hash(t, r.State()))
		}
		if finish {
			err = r.Finish()
		}
		models[g.Rank()] = flat(u.params())
		return err
	}))
	for s := range steps {
		var at []string
		for r := range ranks {
			at = append(at, anchors[r][s])
		}
		same(t, fmt.Sprintf("%T, state after step %d", m, s+1), at)
	}
	for _, w := range worlds {
		sent += w.Sent()
	}
	return models, sent
}

// Every method, in float64, is its formulas to 1e-12, on any number of ranks.
func TestMethodsAreTheirFormulas(t *testing.T) {
	for _, m := range []Method{
		LocalSGD{Every: 1},
		LocalSGD{Every: 4},
		PostLocalSGD{Warmup: 5, Every: 3},
		DiLoCo{Every: 5},
		DiLoCo{Every: 5, Rate: 0.5, Momentum: trainer.Zero},
		DiLoCo{Every: 6, Delay: 2},
		DiLoCo{Every: 6, Delay: 5, Keep: trainer.Zero},
		StreamingDiLoCo{DiLoCo{Every: 6}, 3},
		StreamingDiLoCo{DiLoCo{Every: 6, Delay: 4, Keep: 0.25}, 4}, // two parts under way at once
		SMA{},
		SMA{Alpha: 0.5, Every: 3},
		PairAveraging{Seed: 3},
		PairAveraging{Every: 3, Delay: 2},
	} {
		for _, ranks := range []int{1, 3, 4} {
			p, err := m.plan()
			if err != nil {
				t.Fatal(err)
			}
			for _, finish := range []bool{false, true} {
				got, _ := train(t, m, ranks, 21, finish)
				for r, want := range reference(p, ranks, 21, finish) {
					if d := apart(got[r], want); !(d < 1e-12) {
						t.Errorf("%+v, rank %d of %d, finished %v: %g off", m, r, ranks, finish, d)
					}
					if finish && apart(got[r], got[0]) != 0 {
						t.Errorf("%+v, rank %d of %d: finished, and not with rank 0's model", m, r, ranks)
					}
				}
			}
		}
	}
}

// Averaging models after every step of plain SGD is averaging gradients.
func TestEveryStepIsDDP(t *testing.T) {
	for _, m := range []Method{LocalSGD{Every: 1}, DiLoCo{Every: 1, Rate: 1, Momentum: trainer.Zero}, SMA{Alpha: 1}} {
		got, _ := train(t, m, 3, 100, false)
		want, _ := train(t, PostLocalSGD{Warmup: 100}, 3, 100, false) // which is DDP to the end
		for r := range got {
			if d := apart(got[r], want[r]); d > 1e-12 {
				t.Errorf("%+v: rank %d is %g off DDP", m, r, d)
			}
		}
	}
}

// In a pair both models end with the same bits, and the mean of all stays.
func TestPairsMeet(t *testing.T) {
	for size := 1; size < 8; size++ {
		met := map[int]bool{}
		for step := range int64(60) {
			alone := 0
			for rank := range size {
				with := partner(5, step, rank, size)
				if partner(5, step, with, size) != rank {
					t.Fatalf("%d ranks, step %d: %d meets %d, who meets another", size, step, rank, with)
				}
				if with == rank {
					alone++
				}
				if rank == 0 {
					met[with] = true
				}
			}
			if alone != size%2 {
				t.Errorf("%d ranks, step %d: %d alone", size, step, alone)
			}
		}
		if size%2 == 0 && len(met) != size-1 || size%2 == 1 && len(met) != size {
			t.Errorf("of %d ranks, rank 0 has met %v", size, met)
		}
	}
	got, _ := train(t, PairAveraging{}, 2, 9, false)
	if apart(got[0], got[1]) != 0 {
		t.Error("two that have met differ")
	}
}
