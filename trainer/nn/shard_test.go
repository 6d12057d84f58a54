package nn

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer/nn/internal/kern"
)

// Shards are never empty and never too many, and have every sample once.
func TestShards(t *testing.T) {
	for n := 1; n < 300; n++ {
		g := shards(n)
		if g < 1 || g > n || g > parts {
			t.Errorf("%d samples in %d shards", n, g)
		}
		b := Batch{X: make([]float32, n), Y: make([]uint8, n)}
		for i := range b.X {
			b.X[i], b.Y[i] = float32(i), uint8(i)
		}
		xs, ys := make([]float32, n), make([]uint8, n)
		deal(b, 1, g, xs, ys)
		next := 0
		for s := range g {
			lo, hi := bounds(n, g, s)
			if lo != next || hi <= lo {
				t.Errorf("%d samples, shard %d of %d: [%d, %d) after %d", n, s, g, lo, hi, next)
			}
			for k := lo; k < hi; k++ {
				if want := s + (k-lo)*g; xs[k] != float32(want) || ys[k] != uint8(want) {
					t.Errorf("%d samples, shard %d: place %d has sample %v", n, s, k, xs[k])
				}
			}
			next = hi
		}
		if next != n {
			t.Errorf("%d of %d samples are in a shard", next, n)
		}
	}
}

func TestFold(t *testing.T) {
	for n := 1; n <= parts; n++ {
		v, rows, want := make([]float32, n), make([]float32, 3*n), float32(0)
		for i := range v {
			v[i] = float32(i + 1)
			want += v[i]
			rows[3*i], rows[3*i+2] = v[i], -v[i]
		}
		if got := foldRows(kern.Best(), rows, 3); !slices.Equal(got, []float32{want, 0, -want}) {
			t.Errorf("%d rows: %v, want %v", n, got, want)
		}
		if got := fold(v); got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

// Ranks that share out a batch of 128 have, together, its gradients to the bit.
func TestRanksHaveTheBatchsBits(t *testing.T) {
	const n = 128
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, n*Side*Side), make([]uint8, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range y {
		y[i] = uint8(rng.IntN(Classes))
	}
	for name, c := range map[string]Config{"best": {NoDropout: true, Threads: 2}, "portable": {NoDropout: true, Portable: true}} {
		if name == "portable" && testing.Short() {
			continue
		}
		whole := gradientsOf(t, c, x, y, 0, 1)
		for _, world := range []int{2, 4, 8, 16} {
			ranks := make([][]float32, world)
			for r := range ranks {
				ranks[r] = gradientsOf(t, c, x, y, r, world)
				for i := range ranks[r] {
					ranks[r][i] *= 1 / float32(world)
				}
			}
			if got := foldRows(kern.Best(), slices.Concat(ranks...), len(whole)); !slices.Equal(got, whole) {
				t.Errorf("%s: %d ranks have other bits than one", name, world)
			}
		}
	}
}

// gradientsOf are the tutorial network's, of every world-th sample from rank on.
func gradientsOf(t *testing.T, c Config, x []float32, y []uint8, rank, world int) (all []float32) {
	net, err := NewTutorial(c)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := rank; i < len(y); i += world {
		b.X, b.Y = append(b.X, x[i*Side*Side:(i+1)*Side*Side]...), append(b.Y, y[i])
	}
	if _, err := net.ForwardBackward(context.Background(), b, nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range net.Params() {
		g, _ := tensor.Data[float32](p.Grad)
		all = append(all, g...)
	}
	return all
}
