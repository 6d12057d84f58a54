package compress

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// An averager is a DDP or a ZeRO of stage 2, with what steps.
type averager struct {
	Ready func(i int)
	Wait  func() error
	Step  func() error
}

func adamOf(params []*trainer.Param) (trainer.Optimizer, error) {
	return trainer.NewAdam(params, trainer.AdamConfig{LR: 0.05})
}

// byDDP has the whole optimiser on every rank, byZeRO a share of it.
func byDDP(t *testing.T, g *ops.Group, p *pupil, h trainer.Hook, bucket int) (averager, error) {
	opt, err := adamOf(p.params())
	if err != nil {
		return averager{}, err
	}
	d, err := trainer.NewDDP(t.Context(), g, p.params(), trainer.DDPConfig{Hook: h, FirstBucket: bucket, Bucket: bucket})
	if err != nil {
		return averager{}, err
	}
	return averager{d.Ready, d.Wait, opt.Step}, nil
}

func byZeRO(t *testing.T, g *ops.Group, p *pupil, h trainer.Hook, bucket int) (averager, error) {
	z, err := trainer.NewZeRO(t.Context(), g, p.params(), trainer.ZeROConfig{Hook: h, Bucket: bucket}, adamOf)
	if err != nil {
		return averager{}, err
	}
	return averager{z.Ready, z.Wait, z.Step}, nil
}

// Every hook gives ZeRO at stage 2 the same averages as a DDP, feedback and all, so the
// parameters have the same bits after every step, on all ranks.
func TestZeROWithHooks(t *testing.T) {
	const world, steps = 3, 20
	for _, name := range []string{"float16", "bfloat16", "int8", "int4", "onebit", "topk", "powersgd", "powersgd in int8"} {
		for _, bucket := range []int{64, 1 << 20} {
			var hashes [2][world][]string
			for k, by := range []func(*testing.T, *ops.Group, *pupil, trainer.Hook, int) (averager, error){byDDP, byZeRO} {
				noErrors(t, each(memnet.New(world), func(g *ops.Group) error {
					p := newPupil(g.Rank())
					h, err := hookNow(name, p.params())
					if err != nil {
						return err
					}
					a, err := by(t, g, p, h, bucket)
					for range steps {
						if err != nil {
							return err
						}
						p.step()
						a.Ready(1)
						a.Ready(0)
						err = errors.Join(a.Wait(), a.Step())
						hash, e := trainer.Hash(p.params())
						err = errors.Join(err, e)
						hashes[k][g.Rank()] = append(hashes[k][g.Rank()], fmt.Sprintf("%x", hash))
					}
					return err
				}))
			}
			for k := range hashes {
				for rank, got := range hashes[k] {
					if fmt.Sprint(got) != fmt.Sprint(hashes[0][0]) {
						t.Errorf("%s, buckets of %d: rank %d of %s has other bits than a DDP's rank 0", name, bucket, rank, []string{"DDP", "ZeRO"}[k])
					}
				}
			}
		}
	}
}

// hookNow is New, but for a PowerSGD that begins at once.
func hookNow(name string, params []*trainer.Param) (trainer.Hook, error) {
	switch name {
	case "powersgd":
		return NewPowerSGD(params, PowerSGDConfig{Start: -1})
	case "powersgd in int8":
		return factored(Int8(32), -1)(params)
	}
	return New(name, params)
}

// A hook that fails on one rank of a ZeRO ends all of them with its error.
func TestZeROHookFails(t *testing.T) {
	errs := each(memnet.New(3), func(g *ops.Group) error {
		p := newPupil(g.Rank())
		h := &TopK{}
		if g.Rank() == 2 {
			h.Fraction = 2
		}
		a, err := byZeRO(t, g, p, h, 64)
		if err != nil {
			return err
		}
		a.Ready(1)
		a.Ready(0)
		return a.Wait()
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "a fraction of 2") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
