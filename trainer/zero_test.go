package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

func adamOf(share []*Param) (Optimizer, error) { return NewAdam(share, AdamConfig{LR: 0.01}) }

// A zeroRun is one rank's training with a ZeRO.
type zeroRun[T real] struct {
	n    *net[T]
	ddp  *DDP // at stage 1
	zero *ZeRO
}

func newZeroRun[T real](g *ops.Group, c ZeROConfig) (*zeroRun[T], error) {
	r := &zeroRun[T]{n: newNet[T](uint64(1 + g.Rank()))}
	r.n.special = true
	var err error
	if c.Stage == 1 {
		if r.ddp, err = ddp(g, r.n.params, DDPConfig{Views: true, FirstBucket: 1, Bucket: 70}); err != nil {
			return nil, err
		}
	}
	r.zero, err = NewZeRO(context.Background(), g, r.n.params, c, adamOf)
	return r, err
}

func (r *zeroRun[T]) step(s Share) error {
	var a averager = r.zero
	if r.ddp != nil {
		a = r.ddp
	}
	a.Weigh(s.Weight())
	if len(s.Indices) == 0 {
		a.Idle()
	} else {
		r.n.learn(s.Indices, a.Ready)
	}
	if err := a.Wait(); err != nil {
		return err
	}
	return r.zero.Step()
}

// Both stages give what one process gives, with buckets that cut parameters in two
// and ranks that have no part of some.
func TestZeRO(t *testing.T) {
	for _, c := range []ZeROConfig{{Stage: 1}, {Stage: 2}, {Bucket: 1}, {Stage: 1, Bucket: 1}, {Bucket: 100}} {
		zeroEquivalent[float32](t, c, 1e-5)
		zeroEquivalent[float64](t, c, 1e-12)
	}
}

func zeroEquivalent[T real](t *testing.T, c ZeROConfig, tolerance float64) {
	t.Helper()
	steps := 100
	if UnderRace {
		steps = 10
	}
	m := mode{batch: 7, used: true}
	alone, err := trainNet(nil, m, steps, func(int, *net[T]) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	sampler := elasticSampler(t, 1000*m.batch, ElasticConfig{Shuffle: true, Global: m.batch})
	for size := 1; size <= 4; size++ {
		hashes := make([][][32]byte, size)
		runs := make([]*zeroRun[T], size)
		noErrors(t, each(memnet.New(size), func(rank int, w *memnet.World) error {
			r, err := newZeroRun[T](ops.NewGroup(w, ops.Config{}), c)
			if err != nil {
				return err
			}
			runs[rank] = r
			for step := range steps {
				s, _ := sampler.Deal(Progress{Consumed: int64(step * m.batch)}, rank, size)
				if err := r.step(s); err != nil {
					return err
				}
				h, err := Hash(r.n.params)
				if err != nil {
					return err
				}
				hashes[rank] = append(hashes[rank], h)
			}
			return nil
		}))
		for rank, r := range runs {
			if d := r.n.distance(alone); d > tolerance || math.IsNaN(d) {
				t.Errorf("%+v, %d ranks of %T: rank %d is %g off", c, size, r.n.mean, rank, d)
			}
			for step := range hashes[rank] {
				if hashes[rank][step] != hashes[0][step] {
					t.Fatalf("%+v, %d ranks: rank %d has other bits than rank 0 after step %d", c, size, rank, step)
				}
			}
			elements := 0
			for _, s := range r.zero.State() {
				if strings.HasSuffix(s.Name, ".exp_avg") {
					elements += s.Value.Len()
				}
			}
			if all := netIn*netHidden + 2*netHidden + 4; elements > all/size+len(r.n.params) {
				t.Errorf("%+v, %d ranks: rank %d keeps moments of %d of %d elements", c, size, rank, elements, all)
			}
		}
	}
}

// The state that three ranks gather is that of one optimiser, and two can go on
// from it.
func TestZeROState(t *testing.T) {
	single := newNet[float64](1)
	single.special = true
	opt, err := adamOf(single.params)
	if err != nil {
		t.Fatal(err)
	}
	sampler := elasticSampler(t, 60, ElasticConfig{Global: 6})
	train := func(from, to int64, rank, size int, step func(Share) error) error {
		for at := from; at < to; at++ {
			s, _ := sampler.Deal(Progress{Consumed: 6 * at}, rank, size)
			if err := step(s); err != nil {
				return err
			}
		}
		return nil
	}
	alone := func(s Share) error {
		single.learn(s.Indices, func(int) {})
		return opt.Step()
	}
	if err := train(0, 5, 0, 1, alone); err != nil {
		t.Fatal(err)
	}
	saved := make([][]*Param, 3)
	noErrors(t, each(memnet.New(3), func(rank int, w *memnet.World) error {
		r, err := newZeroRun[float64](ops.NewGroup(w, ops.Config{}), ZeROConfig{Bucket: 80})
		if err != nil {
			return err
		}
		if err := train(0, 5, rank, 3, r.step); err != nil {
			return err
		}
		full, err := r.zero.FullState()
		saved[rank] = append(full, r.n.params...)
		return err
	}))
	for k, want := range opt.State() {
		got := saved[1][k]
		if got.Name != want.Name || got.Value.String() != want.Value.String() {
			t.Fatalf("%q %v, want %q %v", got.Name, got.Value, want.Name, want.Value)
		}
		for i, v := range data[float64](want.Value) {
			if math.Abs(v-data[float64](got.Value)[i]) > 1e-13 {
				t.Fatalf("%s[%d] is %v, want %v", want.Name, i, data[float64](got.Value)[i], v)
			}
		}
	}
	if err := train(5, 10, 0, 1, alone); err != nil {
		t.Fatal(err)
	}
	noErrors(t, each(memnet.New(2), func(rank int, w *memnet.World) error {
		r, err := newZeroRun[float64](ops.NewGroup(w, ops.Config{}), ZeROConfig{Stage: 1})
		if err != nil {
			return err
		}
		if err := errors.Join(r.zero.LoadFullState(saved[rank]), LoadState(r.n.params, saved[rank])); err != nil {
			return err
		}
		if err := train(5, 10, rank, 2, r.step); err != nil {
			return err
		}
		if d := r.n.distance(single); d > 1e-12 {
			return fmt.Errorf("%g off", d)
		}
		return nil
	}))
}

func TestZeRORefuses(t *testing.T) {
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	ctx := context.Background()
	p := floats[float32]("a", 3, 0)
	lamb := func(share []*Param) (Optimizer, error) { return NewLAMB(share, LAMBConfig{}) }
	for says, make := range map[string]func() (*ZeRO, error){
		"give it to that": func() (*ZeRO, error) {
			return NewZeRO(ctx, g, []*Param{p}, ZeROConfig{Stage: 1, Hook: Float16}, adamOf)
		},
		"stage 3":    func() (*ZeRO, error) { return NewZeRO(ctx, g, []*Param{p}, ZeROConfig{Stage: 3}, adamOf) },
		"LAMB":       func() (*ZeRO, error) { return NewZeRO(ctx, g, []*Param{p}, ZeROConfig{}, lamb) },
		"name twice": func() (*ZeRO, error) { return NewZeRO(ctx, g, []*Param{p, p}, ZeROConfig{}, adamOf) },
		"no gradient": func() (*ZeRO, error) {
			return NewZeRO(ctx, g, []*Param{{Name: "b", Value: p.Value}}, ZeROConfig{}, adamOf)
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for says, ready := range map[string][]int{"ready twice": {0, 0}, "gradient 1 of 1": {1}, "in this step for a": {}} {
		z, err := NewZeRO(ctx, g, []*Param{p}, ZeROConfig{}, adamOf)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range ready {
			z.Ready(i)
		}
		if err := z.Wait(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if err := z.LoadFullState(nil); err == nil {
			t.Error("a state of nothing was loaded")
		}
		short := []*Param{{Name: "a.step", Value: tensor.New(tensor.Int64, 1)}, {Name: "a.exp_avg", Value: tensor.New(tensor.Float32, 2)}}
		if err := z.LoadFullState(short); err == nil || !strings.Contains(err.Error(), "float32[2]") {
			t.Errorf("of another parameter: %v", err)
		}
	}
}
