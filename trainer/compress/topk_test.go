package compress

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer/internal/finite"
)

// The picked are those that sorting finds, whatever repeats.
func TestPickIsAsSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p picker
	for range 60 {
		keys := make([]uint32, 1+rng.IntN(300))
		mask := []uint32{1, 7 << 20, 0xffff, 1<<31 - 1}[rng.IntN(4)]
		for i := range keys {
			keys[i] = rng.Uint32() & mask
		}
		count := rng.IntN(len(keys) + 1)
		order := make([]uint32, len(keys))
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(keys[b], keys[a]) })
		want := slices.Sorted(slices.Values(order[:count]))
		if got := p.pick(keys, count); !slices.Equal(got, want) {
			t.Fatalf("%d of %v: %v, want %v", count, keys, got, want)
		}
	}
}

// The greatest of each rank are sent and added up; the others wait for the next step.
func TestTopK(t *testing.T) {
	noErrors(t, each(memnet.New(3), func(g *ops.Group) error {
		hook := &TopK{Fraction: 0.3} // 2 of 4
		b := bucket(0, param("a", 0, 0, 0, 0))
		x := host[float32](b.Data)
		for step, c := range []struct{ gradient, want []float32 }{
			{[]float32{4, -4, 1, 2}, []float32{12, -12, 0, 0}},
			{[]float32{1, 0, 0, 0}, []float32{3, 0, 0, 6}}, // place 0 is before place 2
			{[]float32{0, 0, 0, 0}, []float32{0, 0, 3, 0}},
		} {
			copy(x, c.gradient)
			if err := hook.Reduce(t.Context(), g, b).Wait(); err != nil || !slices.Equal(x, c.want) {
				return fmt.Errorf("step %d: %v, want %v: %w", step, x, c.want, err)
			}
		}
		return nil
	}))
}

// What is sent and what is left behind are together what was there: over all ranks and
// steps nothing is lost, and every rank has the same bits. A NaN reaches all, and stays
// out of the feedback.
func TestTopKLosesNothing(t *testing.T) {
	const n, size, steps = 4, 1000, 5
	got := make([][]float64, n)
	left := make([][]float64, n)
	noErrors(t, each(memnet.New(n), func(g *ops.Group) error {
		hook := &TopK{}
		total := make([]float64, size)
		b := bucket(0, matrixParam("a", tensor.Float64, size))
		x := host[float64](b.Data)
		for step := range steps {
			copy(x, normals(size, uint64(g.Rank()*steps+step), 1))
			if err := hook.Reduce(t.Context(), g, b).Wait(); err != nil {
				return err
			}
			sent := 0
			for i, v := range x {
				total[i] += v
				if v != 0 {
					sent++
				}
			}
			if sent > n*size/100 {
				return fmt.Errorf("%d elements were sent, at most %d", sent, n*size/100)
			}
		}
		got[g.Rank()], left[g.Rank()] = total, slices.Clone(host[float64](hook.of(b)))
		x[7] = math.NaN()
		if err := hook.Reduce(t.Context(), g, b).Wait(); err != nil || !math.IsNaN(x[7]) || !finite.All(host[float64](hook.of(b))) {
			return fmt.Errorf("a NaN became %v: %v", x[7], err)
		}
		return nil
	}))
	for i := range size {
		want := 0.
		for r := range n {
			want -= left[r][i]
			for step := range steps {
				want += normals(size, uint64(r*steps+step), 1)[i]
			}
			if got[r][i] != got[0][i] {
				t.Fatalf("ranks 0 and %d differ", r)
			}
		}
		if math.Abs(got[0][i]-want) > 1e-9 {
			t.Fatalf("element %d: %v, want %v", i, got[0][i], want)
		}
	}
}

// Elements come from other ranks, and may be any bytes.
func FuzzEntries(f *testing.F) {
	f.Add(appendEntry(nil, 3, float32(1)), uint8(4))
	f.Add(appendEntry(nil, 4, 1.), uint8(4))
	f.Fuzz(func(t *testing.T, p []byte, n uint8) {
		single, double := make([]float32, n), make([]float64, n)
		if err := addEntries(single, p); err == nil && len(p)%8 != 0 {
			t.Error("half an element was taken")
		}
		if err := addEntries(double, p); err == nil && len(p)%12 != 0 {
			t.Error("half an element was taken")
		}
	})
}

func TestTopKRefuses(t *testing.T) {
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	for _, fraction := range []float64{-1, 1.1, math.NaN()} {
		if err := (&TopK{Fraction: fraction}).Reduce(t.Context(), g, bucket(0, param("a", 1))).Wait(); err == nil {
			t.Errorf("a fraction of %v was taken", fraction)
		}
	}
	if err := addEntries(make([]float32, 3), appendEntry(nil, 3, float32(1))); err == nil || errors.Unwrap(err) != nil {
		t.Error(err)
	}
	if tensor.Float32.Size() != 4 || entry[float32]() != 8 || entry[float64]() != 12 {
		t.Error("elements have other sizes")
	}
}
