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

func TestHooks(t *testing.T) {
	var plain int64
	for _, c := range []struct {
		name string
		hook Hook
		off  float64
	}{{"none", nil, 1e-6}, {"float16", Float16, 1e-3}, {"bfloat16", BFloat16, 1e-2}} {
		got := make([][]float64, 4)
		worlds := memnet.New(4)
		noErrors(t, each(worlds, func(rank int, w *memnet.World) error {
			params := []*Param{floats[float32]("a", 1000, uint64(rank)), floats[float64]("b", 10, uint64(rank))}
			d, err := ddp(ops.NewGroup(w, ops.Config{}), params, DDPConfig{Hook: c.hook, Synced: true})
			if err != nil {
				return err
			}
			d.Ready(0)
			d.Ready(1)
			if err := d.Wait(); err != nil {
				return err
			}
			for _, v := range grads[float32](params[0]) {
				got[rank] = append(got[rank], float64(v))
			}
			got[rank] = append(got[rank], grads[float64](params[1])...)
			return nil
		}))
		sent := int64(0)
		for _, w := range worlds {
			sent += w.Sent()
		}
		if c.hook == nil {
			plain = sent
		} else if sent > plain*6/10 {
			t.Errorf("%s: %d bytes were sent, %d without a hook", c.name, sent, plain)
		}
		for i := range got[0] {
			want := 0.0
			for r := range 4 {
				if i < 1000 {
					want += float64(grads[float32](floats[float32]("", 1000, uint64(r)))[i]) / 4
				} else {
					want += grads[float64](floats[float64]("", 10, uint64(r)))[i-1000] / 4
				}
				if got[r][i] != got[0][i] {
					t.Fatalf("%s: ranks 0 and %d differ", c.name, r)
				}
			}
			if math.Abs(got[0][i]-want) > c.off*math.Max(1, math.Abs(want)) {
				t.Fatalf("%s: element %d is %v, want %v", c.name, i, got[0][i], want)
			}
		}
	}
}

// A hook sees what a bucket is made of, scaled.
func TestHookSees(t *testing.T) {
	noErrors(t, ranks(3, func(g *ops.Group) error {
		params := []*Param{floats[float32]("a", 2, 0), floats[float32]("b", 4, 0)}
		hook := HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
			if len(b.Params) != 1 || b.Params[0] != params[1-b.Index] || b.Last != (b.Index == 1) || b.Parts[0].Len() != b.Data.Len() ||
				b.Index == 1 && math.Abs(float64(data[float32](b.Data)[0])-2) > 1e-6 {
				return Failed(fmt.Errorf("bucket %+v", b))
			}
			return g.AllReduce(ctx, b.Data, tensor.Sum)
		})
		d, err := ddp(g, params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: hook})
		if err != nil {
			return err
		}
		set(params[0], 6)
		d.Ready(1)
		d.Ready(0)
		return d.Wait()
	}))
}

var errBits = errors.New("the codec is out of bits")

// failures are ways in which a hook can fail, and what is said of them.
var failures = []struct {
	says string
	fail func(ctx context.Context, g *ops.Group, b Bucket) Pending
}{
	{errBits.Error(), func(context.Context, *ops.Group, Bucket) Pending { return Failed(errBits) }},
	{errBits.Error(), func(ctx context.Context, g *ops.Group, b Bucket) Pending { // when it has arrived
		return &Later{First: g.AllReduce(ctx, b.Data, tensor.Sum), Then: func() error { return errBits }}
	}},
	{"bool", func(ctx context.Context, g *ops.Group, b Bucket) Pending { // an argument that ops refuses
		return &Later{First: g.AllReduce(ctx, tensor.New(tensor.Bool, 1), tensor.Avg), Then: func() error { return nil }}
	}},
	{errBits.Error(), func(context.Context, *ops.Group, Bucket) Pending { // one of several
		return several{Failed(errBits)}
	}},
}

// several are waited for one after the other.
type several []Pending

func (s several) Unwrap() []Pending { return s }

func (s several) Wait() error {
	var errs []error
	for _, p := range s {
		errs = append(errs, p.Wait())
	}
	return errors.Join(errs...)
}

// One that fails on one rank ends all ranks with its error, whichever bucket it fails at, in a
// DDP as in a ZeRO.
func TestHookFails(t *testing.T) {
	for _, f := range failures {
		for bad := range 3 {
			for _, zero := range []bool{false, true} {
				errs := each(memnet.New(3), func(rank int, w *memnet.World) error {
					hook := HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
						if rank == 1 && b.Index == bad {
							return f.fail(ctx, g, b)
						}
						return g.AllReduce(ctx, b.Data, tensor.Sum)
					})
					err := hookedStep(ops.NewGroup(w, ops.Config{}), hook, zero)
					if err != nil {
						w.End(err)
					}
					return err
				})
				for rank, err := range errs {
					if err == nil || !strings.Contains(err.Error(), f.says) {
						t.Errorf("bucket %d, ZeRO %v: rank %d: %v", bad, zero, rank, err)
					}
				}
			}
		}
	}
}

// hookedStep is a step with three buckets, and something else that ranks do together while
// they are under way.
func hookedStep(g *ops.Group, hook Hook, zero bool) error {
	params := []*Param{floats[float32]("a", 2, 0), floats[float32]("b", 4, 0), floats[float32]("c", 3, 0)}
	var a averager
	var err error
	if zero {
		a, err = NewZeRO(context.Background(), g, params, ZeROConfig{Bucket: 1, Hook: hook}, adamOf)
	} else {
		a, err = ddp(g, params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: hook})
	}
	if err != nil {
		return err
	}
	for i := range params {
		a.Ready(2 - i)
	}
	if err := a.Err(); err != nil {
		return a.Wait()
	}
	loss := g.AllReduce(context.Background(), tensor.Of([]float64{1}), tensor.Sum)
	if err := errors.Join(a.Wait(), loss.Wait()); err != nil {
		return err
	}
	return g.Barrier(context.Background()).Wait()
}
