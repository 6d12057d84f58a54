package layers

import (
	"testing"

	"peermesh/trainer"
)

// fit takes steps of AdamW and returns the first and the last loss.
func fit(t *testing.T, n *Net, steps int, batch func(step int) Batch) (first, last float64) {
	t.Helper()
	adam, err := trainer.NewAdamW(n.Params(), trainer.AdamWConfig{LR: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		if last, err = n.ForwardBackward(t.Context(), batch(step), nil); err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			first = last
		}
		if err := adam.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return first, last
}

// A transformer learns to say what came four places before, which nothing but
// attention can know.
func TestTransformerLearns(t *testing.T) {
	const positions, back = 12, 4
	for _, tied := range []bool{false, true} {
		model := must(NewTransformer(TransformerConfig{Vocabulary: 8, Width: 32, Heads: 4, Blocks: 1, Tied: tied}))
		n := must(New(Config{Seed: 1, Threads: 2}, Shape{positions}, model, &CrossEntropy{}))
		first, last := fit(t, n, 120, func(step int) Batch {
			b := Batch{X: noise(uint64(step), 16*positions), Labels: make([]int32, 16*positions)}
			for i, v := range b.X {
				b.X[i] = float32(int(1000+v*1000) & 7)
				b.Labels[i] = Ignored
				if i%positions >= back {
					b.Labels[i] = int32(b.X[i-back])
				}
			}
			return b
		})
		if first < 1.8 || last > 0.4 {
			t.Errorf("tied %v: loss from %.3f to %.3f", tied, first, last)
		}
	}
}

// A small network learns a function of its input, by squared error.
func TestRegressionLearns(t *testing.T) {
	n := must(New(Config{Seed: 1}, Shape{2}, Sequential{&Linear{Out: 16}, &GELU{}, &Linear{Out: 1}}, &MSE{}))
	first, last := fit(t, n, 300, func(step int) Batch {
		b := Batch{X: noise(uint64(step), 64), Targets: make([]float32, 32)}
		for i := range b.Targets {
			b.Targets[i] = b.X[2*i] * b.X[2*i+1]
		}
		return b
	})
	if last > first/10 {
		t.Errorf("loss from %.3f to %.3f", first, last)
	}
}
