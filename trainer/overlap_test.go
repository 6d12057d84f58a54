package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// averagers are what averages while backward goes on, and what they have under way, of
// gradients in buckets of their own.
var averagers = map[string]func(g *ops.Group, params []*Param, hook Hook) (a averager, under func() []Pending, err error){
	"DDP": func(g *ops.Group, params []*Param, hook Hook) (averager, func() []Pending, error) {
		d, err := ddp(g, params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: hook})
		return d, func() []Pending { return d.underWay() }, err
	},
	"DDP with Update": func(g *ops.Group, params []*Param, hook Hook) (averager, func() []Pending, error) {
		d, err := ddp(g, params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: hook, Update: func(int) error { return nil }})
		return d, func() []Pending { return d.underWay() }, err
	},
	"ZeRO": func(g *ops.Group, params []*Param, hook Hook) (averager, func() []Pending, error) {
		z, err := NewZeRO(context.Background(), g, params, ZeROConfig{Bucket: 1, Hook: hook}, adamOf)
		return z, func() (all []Pending) {
			for _, b := range z.buckets[:z.launched] {
				all = append(all, b.work)
			}
			return all
		}, err
	},
}

func (d *DDP) underWay() (all []Pending) {
	for _, b := range d.buckets[:d.launched] {
		all = append(all, b.work)
	}
	return all
}

// threeParams are parameters for as many buckets.
func threeParams() []*Param {
	return []*Param{floats[float32]("a", 4, 0), floats[float32]("b", 4, 1), floats[float32]("c", 4, 2)}
}

// A full bucket is on its way, and arrives, before the others' gradients are ready, and none
// overtakes another.
func TestOverlaps(t *testing.T) {
	for name, build := range averagers {
		synctest.Test(t, func(t *testing.T) {
			for rank, err := range ranks(2, func(g *ops.Group) error {
				a, under, err := build(g, threeParams(), nil)
				if err != nil {
					return err
				}
				a.Ready(1)
				if len(under()) != 0 {
					return errors.New("bucket 1 overtook bucket 0")
				}
				a.Ready(2)
				if n := len(under()); n != 2 {
					return fmt.Errorf("%d buckets under way, want 2", n)
				}
				for _, work := range under() {
					<-work.(*ops.Work).Done() // with a gradient still to come
				}
				a.Ready(0)
				return a.Wait()
			}) {
				if err != nil {
					t.Errorf("%s: rank %d: %v", name, rank, err)
				}
			}
		})
	}
}

// Wait waits for every bucket, whichever has failed, and returns what went wrong first.
func TestWaitKeepsTheFirstError(t *testing.T) {
	for name, build := range averagers {
		for rank, err := range ranks(2, func(g *ops.Group) error {
			arrived := 0
			hook := HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
				return &Later{First: g.AllReduce(ctx, b.Data, tensor.Sum), Then: func() error {
					if arrived++; b.Index == 0 {
						return nil
					}
					return fmt.Errorf("bucket %d is lost", b.Index)
				}}
			})
			a, _, err := build(g, threeParams(), hook)
			if err != nil {
				return err
			}
			for i := range 3 {
				a.Ready(2 - i)
			}
			if err = a.Wait(); arrived != 3 {
				return fmt.Errorf("%d of 3 buckets have arrived, %w", arrived, err)
			}
			return err
		}) {
			if err == nil || !strings.HasSuffix(err.Error(), "averaging gradients: bucket 1 is lost") {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}
