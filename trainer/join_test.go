package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// One to four ranks whose batches end at different times give, over a hundred steps and
// under either divisor, what one process gives that adds up the gradients; all ranks have
// the same bits after every step, those without batches too.
func TestJoinOfAnySize(t *testing.T) {
	for _, uneven := range []Uneven{DivideByAll, DivideByActive} {
		for size := 1; size <= 4; size++ {
			unevenly[float32](t, uneven, size, 1e-5)
			unevenly[float64](t, uneven, size, 1e-12)
		}
	}
}

func unevenly[T real](t *testing.T, uneven Uneven, size int, tolerance float64) {
	t.Helper()
	steps := 100
	if UnderRace {
		steps = 10
	}
	batches := make([]int, size) // the last rank has all, the others fewer
	for rank := range batches {
		batches[rank] = steps - (size-1-rank)*steps/5
	}
	want := addedUp[T](t, uneven, batches)
	nets, hashes := make([]*net[T], size), make([][][32]byte, size)
	noErrors(t, each(memnet.New(size), func(rank int, w *memnet.World) error {
		n := newNet[T](1)
		n.special, nets[rank] = true, n
		c := DDPConfig{Uneven: uneven, Views: rank%2 == 0, FirstBucket: 1, Bucket: 70}
		d, err := NewDDP(context.Background(), ops.NewGroup(w, ops.Config{}), n.params, c)
		if err != nil {
			return err
		}
		opt, err := NewAdam(n.params, AdamConfig{LR: 0.01})
		if err != nil {
			return err
		}
		step := func() error {
			err := opt.Step()
			h, e := Hash(n.params)
			hashes[rank] = append(hashes[rank], h)
			return errors.Join(err, e)
		}
		for k := range batches[rank] {
			n.learn([]int{7*k + rank}, d.Ready)
			if err := errors.Join(d.Wait(), step()); err != nil {
				return err
			}
		}
		return d.Join(step)
	}))
	for rank, n := range nets {
		what := fmt.Sprintf("divisor %d, rank %d of %d, %T", uneven, rank, size, want.factor)
		if d := n.distance(want); !(d <= tolerance) {
			t.Errorf("%s: %g off", what, d)
		}
		if len(hashes[rank]) != steps {
			t.Fatalf("%s: %d steps, want %d", what, len(hashes[rank]), steps)
		}
		for k, h := range hashes[rank] {
			if h != hashes[0][k] {
				t.Fatalf("%s: other bits than rank 0's after step %d", what, k)
			}
		}
	}
}

// addedUp is what one process makes of the ranks' batches.
func addedUp[T real](t *testing.T, uneven Uneven, batches []int) *net[T] {
	t.Helper()
	n := newNet[T](1)
	n.special = true
	opt, err := NewAdam(n.params, AdamConfig{LR: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	for k := range batches[len(batches)-1] {
		total, active := make([]tensor.Tensor, len(n.params)), 0
		for rank, b := range batches {
			if k >= b {
				continue
			}
			active++
			n.learn([]int{7*k + rank}, func(int) {})
			for i, p := range n.params {
				if total[i].Memory() == nil {
					total[i] = clone(p.Grad)
				} else {
					add(total[i], p.Grad)
				}
			}
		}
		if uneven == DivideByAll {
			active = len(batches)
		}
		for i, p := range n.params {
			copyElements(p.Grad, total[i])
			divide(p.Grad, active)
		}
		if err := opt.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if d := n.distance(newNet[T](1)); d < 0.01 || math.IsNaN(d) {
		t.Fatalf("nothing was learnt: %v", d)
	}
	return n
}
