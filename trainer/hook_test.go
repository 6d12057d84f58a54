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

// A hook sees what a bucket is made of, scaled; one that fails on one rank ends all
// ranks with its error.
func TestHookFails(t *testing.T) {
	broken := errors.New("the codec is out of bits")
	errs := each(memnet.New(3), func(rank int, w *memnet.World) error {
		params := []*Param{floats[float32]("a", 2, 0), floats[float32]("b", 4, 0)}
		hook := HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
			if len(b.Params) != 1 || b.Params[0] != params[1-b.Index] || b.Last != (b.Index == 1) || b.Parts[0].Len() != b.Data.Len() ||
				b.Index == 1 && math.Abs(float64(data[float32](b.Data)[0])-2) > 1e-6 {
				return Failed(fmt.Errorf("bucket %+v", b))
			}
			if rank == 1 && b.Index == 1 {
				return Failed(broken)
			}
			return g.AllReduce(ctx, b.Data, tensor.Sum)
		})
		d, err := ddp(ops.NewGroup(w, ops.Config{}), params, DDPConfig{FirstBucket: 1, Bucket: 1, Hook: hook})
		if err != nil {
			return err
		}
		set(params[0], 6)
		d.Ready(1)
		d.Ready(0)
		err = d.Wait()
		if err != nil {
			w.End(err)
		}
		return err
	})
	for r, err := range errs {
		if !errors.Is(err, broken) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
