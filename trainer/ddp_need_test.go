package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
)

// needs are which parameters a model asks for before it uses them, in an order.
var needs = map[string][]int{"all": {0, 1, 2, 3, 4}, "backwards": {4, 3, 2, 1, 0}, "some": {2}, "none": nil}

// trainNeeding takes steps as trainNet does, with nothing between two of them but what the
// model needs, and evaluates after every fifth.
func trainNeeding(g *ops.Group, m mode, steps int, order []int) (*net[float64], error) {
	n := newNet[float64](uint64(1 + g.Rank()))
	n.special = true
	optimizers := make([]Optimizer, len(n.params))
	for i := range optimizers {
		var err error
		if optimizers[i], err = NewAdam(n.params[i:i+1], AdamConfig{LR: 0.01}); err != nil {
			return nil, err
		}
	}
	updated := 0
	m.ddp.Update = func(i int) error {
		updated++
		return optimizers[i].Step()
	}
	d, err := NewDDP(context.Background(), g, n.params, m.ddp)
	if err != nil {
		return nil, err
	}
	sampler, err := NewElasticSampler(1000*m.batch, ElasticConfig{Shuffle: true, Global: m.batch})
	if err != nil {
		return nil, err
	}
	for step := range steps {
		s, _ := sampler.Deal(Progress{Consumed: int64(step * m.batch)}, g.Rank(), g.Size())
		if err := n.shareNeeding(d, m, s, order); err != nil {
			return nil, err
		}
		if step%5 == 4 {
			if err := errors.Join(d.Wait(), d.Wait()); err != nil {
				return nil, err
			}
			if updated != (step+1)*len(n.params) {
				return nil, fmt.Errorf("%d updates after %d steps of %d parameters", updated, step+1, len(n.params))
			}
		}
	}
	return n, d.Wait()
}

// shareNeeding waits for what is needed before each of them.
func (n *net[T]) shareNeeding(d *DDP, m mode, s Share, order []int) error {
	return n.parts(d, m, s, func(part []int, last bool) error {
		if len(part) == 0 {
			d.Idle()
			return nil
		}
		for _, i := range order {
			if err := d.Need(i); err != nil {
				return err
			}
		}
		if len(order) < len(n.params) { // the model reads them all the same
			if err := d.Wait(); err != nil {
				return err
			}
		}
		n.learn(part, d.Ready)
		if last {
			return nil
		}
		return d.Wait()
	})
}

// A step whose gradients are waited for in the next forward pass has the bits of one that
// waits at its end, in any mode.
func TestNeedKeepsBits(t *testing.T) {
	small := DDPConfig{FirstBucket: 1, Bucket: 1, Abreast: true}
	views := DDPConfig{FirstBucket: 40, Bucket: 60, Views: true}
	short := DDPConfig{FirstBucket: 1, Bucket: 1, Hook: Float16}
	apart := DDPConfig{FirstBucket: 1, LastBucket: 1, Abreast: true}
	steps, sizes := 20, []int{1, 2, 3, 4}
	if UnderRace {
		steps, sizes = 6, []int{3}
	}
	for _, m := range []mode{
		{name: "one bucket", batch: 12, micro: 1}, {name: "a bucket each", batch: 12, micro: 1, ddp: small},
		{name: "the last apart", batch: 12, micro: 1, ddp: apart}, {name: "views", batch: 12, micro: 1, ddp: views}, {name: "a hook", batch: 12, micro: 1, ddp: short},
		{name: "accumulation", batch: 24, micro: 2, ddp: small}, {name: "accumulation in views", batch: 24, micro: 2, ddp: views},
		{name: "uneven batches", batch: 7, micro: 1, ddp: views}, {name: "fewer samples than ranks", batch: 3, micro: 1, ddp: small},
	} {
		m.used = true
		for name, order := range needs {
			for _, size := range sizes {
				errs := each(memnet.New(size), func(rank int, w *memnet.World) error {
					g := ops.NewGroup(w, ops.Config{})
					want, err := trainNet(g, m, steps, func(int, *net[float64]) error { return nil })
					if err != nil {
						return err
					}
					got, err := trainNeeding(g, m, steps, order)
					if err != nil {
						return err
					}
					if d := got.distance(want); d != 0 {
						return fmt.Errorf("%s, %s needed, %d ranks: %g off", m.name, name, size, d)
					}
					return nil
				})
				noErrors(t, errs)
			}
		}
	}
}

// gates is a hook whose buckets arrive when their gates open.
type gates []chan error

func (h gates) Reduce(_ context.Context, _ *ops.Group, b Bucket) Pending {
	return &Later{First: gate(h[b.Index]), Then: func() error { return nil }}
}

type gate chan error

func (g gate) Wait() error { return <-g }

// needing is a DDP of three parameters with a bucket each, whose first step is over: of the
// second, parameter 0 is in bucket 2 and parameter 2 in bucket 0.
func needing(t *testing.T, update func(i int) error) (*DDP, gates) {
	t.Helper()
	h := gates{make(chan error, 1), make(chan error, 1), make(chan error, 1)}
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	params := []*Param{floats[float32]("a", 2, 0), floats[float32]("b", 2, 0), floats[float32]("c", 2, 0)}
	d, err := NewDDP(t.Context(), g, params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: h, Update: update})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 2 {
		for i := 2; i >= 0; i-- {
			set(params[i], 1)
			d.Ready(i)
		}
		if step == 0 {
			for _, gate := range h {
				gate <- nil
			}
			if err := d.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d, h
}

// A parameter that is needed waits for its own bucket and no other.
func TestNeedWaitsForOneBucket(t *testing.T) {
	var updated []int
	d, h := needing(t, func(i int) error { updated = append(updated, i); return nil })
	h[2] <- nil
	if err := d.Need(0); err != nil { // it would hang, waiting for others
		t.Fatal(err)
	}
	if want := "[2 1 0 0]"; fmt.Sprint(updated) != want {
		t.Errorf("%v were updated, want %s", updated, want)
	}
	h[0] <- nil
	h[1] <- nil
	if err := errors.Join(d.Need(2), d.Need(0), d.Wait()); err != nil {
		t.Fatal(err)
	}
	if want := "[2 1 0 0 2 1]"; fmt.Sprint(updated) != want {
		t.Errorf("%v were updated, want %s", updated, want)
	}
	if err := errors.Join(d.Need(1), d.Wait()); err != nil || len(updated) != 6 {
		t.Errorf("between steps: %v, %v updated", err, updated)
	}
	if err := d.Need(3); err == nil || !strings.Contains(err.Error(), "there are 3") {
		t.Errorf("a fourth of three parameters: %v", err)
	}
}

// What goes wrong with one bucket comes out of Need, when all have ended.
func TestNeedFails(t *testing.T) {
	broken := errors.New("broken")
	d, h := needing(t, func(int) error { return nil })
	h[0] <- broken
	h[1] <- nil
	h[2] <- nil
	if err := errors.Join(d.Need(0), d.Need(1)); err != nil {
		t.Fatal(err)
	}
	if err := d.Need(2); !errors.Is(err, broken) {
		t.Errorf("the bucket that failed: %v", err)
	}
	if len(h[0])+len(h[1])+len(h[2]) > 0 {
		t.Error("a bucket was not waited for")
	}
	steps := 0
	d, h = needing(t, func(i int) error {
		if steps++; steps > 3 {
			return broken
		}
		return nil
	})
	for _, gate := range h {
		gate <- nil
	}
	if err := d.Need(1); !errors.Is(err, broken) || !strings.Contains(err.Error(), `updating "b"`) {
		t.Errorf("an update that fails: %v", err)
	}
}

// A step that lacks a gradient is an error of whoever comes next.
func TestNeedOfAbsentGradient(t *testing.T) {
	for name, next := range map[string]func(d *DDP) error{
		"need": func(d *DDP) error { return d.Need(0) },
		"wait": func(d *DDP) error { return d.Wait() },
	} {
		d, h := needing(t, func(int) error { return nil })
		for _, gate := range h {
			gate <- nil
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		d.Ready(2)
		h[0] <- nil
		if err := next(d); err == nil || !strings.Contains(err.Error(), "was ready in this step for a, b") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpdateRefuses(t *testing.T) {
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	update := func(int) error { return nil }
	p := []*Param{floats[float32]("a", 2, 0)}
	for _, c := range []DDPConfig{{FindUnused: true}, {Static: true}, {Uneven: DivideByAll}, {Buffers: p}} {
		c.Update = update
		if _, err := NewDDP(t.Context(), g, p, c); err == nil || !strings.Contains(err.Error(), "Update goes without") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	d, err := NewDDP(t.Context(), g, p, DDPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Need(7); err != nil {
		t.Errorf("without Update: %v", err)
	}
}
