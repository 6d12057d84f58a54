package local

import (
	"errors"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
)

// learn trains pupils of float32 with AdamW for some steps and returns the mean loss of
// the one model that they end with, and the bytes that all have sent.
func learn(t *testing.T, m Method, ranks, steps int) (loss float64, sent int64) {
	t.Helper()
	worlds := memnet.New(ranks)
	losses, hashes, states := make([]float64, ranks), make([]string, ranks), make([]string, ranks)
	noErrors(t, onEach(worlds, func(g *ops.Group) error {
		u := newPupil(tensor.Float32, g.Rank())
		r, err := New(m, u.params())
		if err != nil {
			return err
		}
		ddp, err := trainer.NewDDP(t.Context(), g, u.params(), trainer.DDPConfig{})
		inner, e := trainer.NewAdamW(u.params(), trainer.AdamWConfig{LR: 0.05})
		if err := errors.Join(err, e, r.Begin(t.Context(), g)); err != nil {
			return err
		}
		for step := range steps {
			if step == 3*steps/4 {
				inner.Rates()[0] /= 10
			}
			u.step()
			if r.Warm() {
				ddp.Ready(1)
				ddp.Ready(0)
				err = ddp.Wait()
			}
			if err := errors.Join(err, inner.Step(), r.Step()); err != nil {
				return err
			}
		}
		err = r.Finish()
		losses[g.Rank()], hashes[g.Rank()], states[g.Rank()] = u.step(), hash(t, u.params()), hash(t, r.State())
		return err
	}))
	same(t, "models", hashes)
	same(t, "states", states)
	for r, w := range worlds {
		loss += losses[r] / float64(ranks)
		sent += w.Sent()
	}
	return loss, sent
}

// Every method gets about as far as averaging gradients, in its share of the bytes.
func TestMethodsConverge(t *testing.T) {
	const ranks, steps = 4, 200
	want, all := learn(t, PostLocalSGD{Warmup: steps}, ranks, steps)
	for _, c := range []struct {
		m    Method
		part float64 // of the bytes, at most
	}{
		{LocalSGD{Every: 4}, 0.3},
		{LocalSGD{Every: 4, Codec: compress.Int8(16)}, 0.2},
		{PostLocalSGD{Warmup: 20, Every: 10}, 0.25},
		{DiLoCo{Every: 10, Rate: 0.8, Momentum: 0.5}, 0.15},
		{DiLoCo{Every: 10, Rate: 0.8, Momentum: 0.5, Codec: compress.Int4(16)}, 0.1},
		{DiLoCo{Every: 10, Delay: 3, Codec: compress.Int8(16)}, 0.12},
		{StreamingDiLoCo{DiLoCo{Every: 10, Delay: 2}, 2}, 0.2},
		{SMA{Every: 2}, 0.6},
		{SMA{Every: 2, Codec: compress.Int8(16)}, 0.5},
		{PairAveraging{Every: 2}, 0.4},
	} {
		loss, sent := learn(t, c.m, ranks, steps)
		p, _ := c.m.plan()
		t.Logf("%.4f, averaging gradients %.4f; %.3f of the bytes: %s", loss, want, float64(sent)/float64(all), p.name)
		if !(loss < 1.1*want+0.005) {
			t.Errorf("%s: a loss of %v, averaging gradients %v", p.name, loss, want)
		}
		if got := float64(sent) / float64(all); got > c.part {
			t.Errorf("%s: %.3f of the bytes, want %v", p.name, got, c.part)
		}
	}
}

// What travels is what the guide says: an all-reduce of the model a round, in a codec's
// bytes, and with pairs the model.
func TestBytesOfRounds(t *testing.T) {
	model := int64(4 * (inputs*outputs + outputs))
	bytes := func(m Method, steps int) int64 {
		_, with := learn(t, m, 2, steps)
		return with
	}
	const tag = ops.TagSize
	for _, c := range []struct {
		m    Method
		each int64 // of both ranks, a round
	}{
		{LocalSGD{Every: 5}, 2 * model}, // 2(n−1)/n of the model, on each of two ranks
		{DiLoCo{Every: 5, Codec: compress.Int8(65)}, 2 * (65 + 4)},
		{PairAveraging{Every: 5}, 2 * model},
	} {
		got := bytes(c.m, 35) - bytes(c.m, 10)
		if extra := got - 5*c.each; extra < 0 || extra > 5*16*tag {
			t.Errorf("%+v: five rounds are %d bytes, want %d and tags", c.m, got, 5*c.each)
		}
	}
}

// Feedback: what a coarse codec rounds off comes with later rounds, so that the anchor
// stays with what the ranks have moved in all. Each moves by little beside a large step,
// which alone decides a block's unit.
func TestFeedback(t *testing.T) {
	for _, m := range []Method{LocalSGD{Every: 1, Codec: compress.Int4(0)}, SMA{Alpha: 0.5, Codec: compress.Int4(0)}} {
		noErrors(t, onEach(memnet.New(2), func(g *ops.Group) error {
			x := make([]float64, 8)
			r, err := New(m, []*trainer.Param{{Name: "x", Value: tensor.Of(x)}})
			if err == nil {
				err = r.Begin(t.Context(), g)
			}
			for k := range 400 {
				x[0] += float64(1 - 2*(k%2)) // up and down
				for i := range x[1:] {
					x[1+i] += 0.001 * float64(i+g.Rank())
				}
				if err == nil {
					err = r.Step()
				}
			}
			anchor := elements[float64](r.State()[0].Value)
			for i := range x[1:] {
				if want := 400 * 0.001 * (float64(i) + 0.5); anchor[1+i] < want-0.2 || anchor[1+i] > want+0.2 {
					t.Errorf("%T: element %d has come to %v, want about %v", m, 1+i, anchor[1+i], want)
				}
			}
			return err
		}))
	}
}
