package compress

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
	"peermesh/trainer"
)

// A teacher's linear map of 24 to 8, seen through noise, is what the ranks learn.
const (
	inputs, outputs = 24, 8
	samples         = 24 // of each rank
	ranks           = 4
	steps           = 150
)

// A pupil is one rank's model: w is 8 × 24, b is 8.
type pupil struct {
	w, b *trainer.Param
	x, y []float64
}

func newPupil(rank int) *pupil {
	p := &pupil{w: matrixParam("w", tensor.Float32, outputs, inputs), b: matrixParam("b", tensor.Float32, outputs)}
	teacher := normals(outputs*inputs, 1000, 1)
	p.x, p.y = normals(samples*inputs, uint64(rank), 1), normals(samples*outputs, uint64(rank+100), 0.3)
	for s := range samples {
		for o := range outputs {
			for i := range inputs {
				p.y[s*outputs+o] += teacher[o*inputs+i] * p.x[s*inputs+i]
			}
			p.y[s*outputs+o] += float64(o)
		}
	}
	return p
}

func (p *pupil) params() []*trainer.Param { return []*trainer.Param{p.w, p.b} }

// step leaves the gradient of half the mean square error, and returns twice that.
func (p *pupil) step() (loss float64) {
	w, b := host[float32](p.w.Value), host[float32](p.b.Value)
	gw, gb := host[float32](p.w.Grad), host[float32](p.b.Grad)
	clear(gw)
	clear(gb)
	for s := range samples {
		x := p.x[s*inputs:][:inputs]
		for o := range outputs {
			d := float64(b[o]) - p.y[s*outputs+o]
			for i, v := range x {
				d += float64(w[o*inputs+i]) * v
			}
			loss += d * d / (samples * outputs)
			gb[o] += float32(d / samples)
			for i, v := range x {
				gw[o*inputs+i] += float32(d * v / samples)
			}
		}
	}
	return loss
}

// learn trains and returns the loss over all ranks, and what was sent by all.
func learn(t *testing.T, hook makeHook) (float64, int64) {
	t.Helper()
	losses, hashes := make([]float64, ranks), make([]string, ranks)
	worlds := memnet.New(ranks)
	noErrors(t, each(worlds, func(g *ops.Group) error {
		p := newPupil(g.Rank())
		h, err := hook(p.params())
		if err != nil {
			return err
		}
		ddp, err := trainer.NewDDP(t.Context(), g, p.params(), trainer.DDPConfig{Hook: h, FirstBucket: 64})
		if err != nil {
			return err
		}
		sgd, err := trainer.NewSGD(p.params(), trainer.SGDConfig{LR: 0.3})
		if err != nil {
			return err
		}
		for step := range steps {
			if step == 2*steps/3 {
				sgd.Rates()[0] /= 4
			}
			p.step()
			ddp.Ready(1)
			ddp.Ready(0)
			if err := errors.Join(ddp.Wait(), sgd.Step()); err != nil {
				return err
			}
		}
		losses[g.Rank()] = p.step()
		hash, err := trainer.Hash(p.params())
		hashes[g.Rank()] = fmt.Sprintf("%x", hash)
		return err
	}))
	loss, sent := 0., int64(0)
	for r := range ranks {
		if hashes[r] != hashes[0] {
			t.Fatalf("ranks 0 and %d have different parameters", r)
		}
		loss += losses[r] / ranks
		sent += worlds[r].Sent()
	}
	return loss, sent
}

type makeHook = func(params []*trainer.Param) (trainer.Hook, error)

func named(name string) makeHook {
	return func(params []*trainer.Param) (trainer.Hook, error) { return New(name, params) }
}

func coding(c ops.Codec) makeHook {
	return func([]*trainer.Param) (trainer.Hook, error) { return &Coded{Codec: c}, nil }
}

// factored is New's PowerSGD, whose matrices travel in a codec.
func factored(c ops.Codec, start int) makeHook {
	return func(params []*trainer.Param) (trainer.Hook, error) {
		return NewPowerSGD(params, PowerSGDConfig{Start: start, Rank: 2, Factors: c})
	}
}

// Each hook, and each of two in one, gets to the loss that plain averaging gets to, within
// its tolerance.
func TestHooksConverge(t *testing.T) {
	plain, sent := learn(t, func([]*trainer.Param) (trainer.Hook, error) { return nil, nil })
	if plain > 0.1 {
		t.Fatalf("plain averaging ends at %v", plain)
	}
	sends := make(map[string]int64)
	for _, c := range []struct {
		name   string
		within float64
		hook   makeHook
		less   string // than which it sends, if it is to
	}{
		{"float16", 1e-3, named("float16"), ""},
		{"bfloat16", 1e-3, named("bfloat16"), ""},
		{"int8", 1e-3, coding(Int8(32)), ""}, // blocks that suit so small a model
		{"int4", 2e-3, coding(Int4(32)), ""},
		{"onebit", 0.02, coding(OneBit(32)), ""},
		{"topk", 0.02, func([]*trainer.Param) (trainer.Hook, error) { return &TopK{Fraction: 0.1}, nil }, ""},
		{"powersgd", 2e-3, named("powersgd"), ""},
		{"powersgd in float16", 2e-3, factored(Float16{}, namedStart), "powersgd"},
		{"powersgd in bfloat16", 2e-3, factored(BFloat16{}, namedStart), "powersgd"},
		{"powersgd in int8", 2e-3, factored(Int8(32), namedStart), "powersgd"},
	} {
		loss, bytes := learn(t, c.hook)
		sends[c.name] = bytes
		off := math.Abs(loss-plain) / plain
		t.Logf("%-20s ends at %.5f, plain averaging at %.5f; bytes %.2f", c.name, loss, plain, float64(bytes)/float64(sent))
		if !(off < c.within) {
			t.Errorf("%s ends at %v, plain averaging at %v: %.4f off, want %v", c.name, loss, plain, off, c.within)
		}
		if c.less != "" && bytes >= sends[c.less] {
			t.Errorf("%s sends %d bytes, %s %d", c.name, bytes, c.less, sends[c.less])
		}
	}
}

// What feedback is for: the same codecs without it end elsewhere.
func TestFeedbackMatters(t *testing.T) {
	for _, codec := range []ops.Codec{OneBit(32), Int4(64)} {
		with, _ := learn(t, coding(codec))
		without, _ := learn(t, func([]*trainer.Param) (trainer.Hook, error) { return &Coded{Codec: codec, NoFeedback: true}, nil })
		t.Logf("%s: %v with feedback, %v without", codec.Name(), with, without)
		if without < with {
			t.Errorf("%s: %v without feedback, %v with", codec.Name(), without, with)
		}
	}
}

// A broken codec fails at a rank.
type broken struct{ Int8 }

func (broken) Block() (int, int) { return 0, 0 }

// What fails on one rank fails on all, with that rank's error.
func TestFailureEndsAllRanks(t *testing.T) {
	hooks := map[string]func(odd bool, params []*trainer.Param) (trainer.Hook, error){
		"argument": func(odd bool, _ []*trainer.Param) (trainer.Hook, error) {
			if odd {
				return &Coded{Codec: broken{}}, nil
			}
			return &Coded{Codec: Int8(0)}, nil
		},
		"of 0 elements": func(odd bool, params []*trainer.Param) (trainer.Hook, error) {
			c := PowerSGDConfig{Start: -1}
			if odd {
				c.Factors = broken{}
			}
			return NewPowerSGD(params, c)
		},
		"a fraction of 2": func(odd bool, _ []*trainer.Param) (trainer.Hook, error) {
			if odd {
				return &TopK{Fraction: 2}, nil
			}
			return &TopK{}, nil
		},
		"out of bits": func(odd bool, _ []*trainer.Param) (trainer.Hook, error) {
			return trainer.HookFunc(func(ctx context.Context, g *ops.Group, b trainer.Bucket) trainer.Pending {
				if odd {
					return trainer.Failed(errors.New("out of bits"))
				}
				return (&Coded{Codec: OneBit(0)}).Reduce(ctx, g, b)
			}), nil
		},
	}
	for want, make := range hooks {
		errs := each(memnet.New(3), func(g *ops.Group) error {
			p := newPupil(g.Rank())
			h, err := make(g.Rank() == 1, p.params())
			if err != nil {
				return err
			}
			ddp, err := trainer.NewDDP(t.Context(), g, p.params(), trainer.DDPConfig{Hook: h})
			if err != nil {
				return err
			}
			p.step()
			ddp.Ready(1)
			ddp.Ready(0)
			return ddp.Wait()
		})
		if want == "argument" {
			want = "makes 0 bytes of 0 elements"
		}
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: rank %d: %v", want, r, err)
			}
		}
	}
}
