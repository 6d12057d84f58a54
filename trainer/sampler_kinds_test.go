package trainer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func indices(t *testing.T, epoch int) func(s Sampler, err error) []int {
	t.Helper()
	return func(s Sampler, err error) []int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s.SetEpoch(epoch)
		got := s.Indices()
		if len(got) != s.Len() {
			t.Errorf("%d indices, Len is %d", len(got), s.Len())
		}
		if again := s.Indices(); !slices.Equal(got, again) {
			t.Errorf("%v, then %v", got, again)
		}
		return got
	}
}

func sequential(t *testing.T, n int) Sampler {
	t.Helper()
	s, err := NewSequentialSampler(n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSimpleSamplers(t *testing.T) {
	random := func(n int, c RandomConfig) []int { s, err := NewRandomSampler(n, c); return indices(t, 1)(s, err) }
	subset := func(i []int, order Sampler) []int { s, err := NewSubsetSampler(i, order); return indices(t, 1)(s, err) }
	shuffled, err := NewRandomSampler(3, RandomConfig{})
	if err != nil {
		t.Fatal(err)
	}
	perm := torchPerm(3, 1)
	for _, c := range []struct {
		what      string
		got, want []int
	}{
		{"in order", indices(t, 5)(sequential(t, 3), nil), []int{0, 1, 2}},
		{"nothing", random(0, RandomConfig{}), nil},
		{"randperm(10), seed 1", random(10, RandomConfig{}), []int{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
		{"its beginning", random(10, RandomConfig{Samples: 3}), []int{5, 6, 1}},
		{"seed and epoch", random(10, RandomConfig{Seed: 1}), torchPerm(10, 2)},
		{"of one", random(1, RandomConfig{Replace: true, Samples: 3}), []int{0, 0, 0}},
		{"subset", subset([]int{7, 3, 7}, nil), []int{7, 3, 7}},
		{"subset, shuffled", subset([]int{10, 11, 12}, shuffled), []int{10 + perm[0], 10 + perm[1], 10 + perm[2]}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestRandomSamplerReplaces(t *testing.T) {
	s, err := NewRandomSampler(4, RandomConfig{Replace: true, Samples: 4000})
	if err != nil {
		t.Fatal(err)
	}
	first := indices(t, 0)(s, nil)
	if slices.Equal(first, indices(t, 1)(s, nil)) {
		t.Error("two epochs are alike")
	}
	counts(t, first, []float64{1000, 1000, 1000, 1000})
}

// counts wants each index about so often: within five standard deviations.
func counts(t *testing.T, drawn []int, want []float64) {
	t.Helper()
	got := make([]float64, len(want))
	for _, i := range drawn {
		got[i]++
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 5*math.Sqrt(want[i]) {
			t.Errorf("%v times, want about %v", got, want)
		}
	}
}

func TestBatchSampler(t *testing.T) {
	for _, c := range []struct {
		n, size int
		drop    bool
		want    string
	}{
		{5, 2, false, "[[0 1] [2 3] [4]]"}, {5, 2, true, "[[0 1] [2 3]]"}, {4, 2, false, "[[0 1] [2 3]]"},
		{0, 2, false, "[]"}, {1, 2, true, "[]"},
	} {
		s, err := NewBatchSampler(sequential(t, c.n), c.size, c.drop)
		if err != nil {
			t.Fatal(err)
		}
		s.SetEpoch(3)
		got := slices.Collect(s.Batches())
		if fmt.Sprint(got) != c.want || len(got) != s.Len() {
			t.Errorf("%+v: %v, Len %d", c, got, s.Len())
		}
	}
}

// Whatever the world, every sample is counted once.
func TestEvalSamplerCountsOnce(t *testing.T) {
	for n := range 20 {
		for world := 1; world <= 7; world++ {
			var all []int
			least, most := n, 0
			for rank := range world {
				s, err := NewEvalSampler(n, world, rank)
				mine := indices(t, 2)(s, err)
				least, most = min(least, len(mine)), max(most, len(mine))
				all = append(all, mine...)
			}
			if !slices.Equal(all, inOrder(n)) || most-least > 1 {
				t.Errorf("%d over %d: %v, %d to %d each", n, world, all, least, most)
			}
		}
	}
}

// The share of a permutation is what a DistributedSampler deals.
func TestShareSamplerIsADistributedOne(t *testing.T) {
	for n := range 12 {
		for world := 1; world <= 5; world++ {
			for rank := range world {
				for _, drop := range []bool{false, true} {
					all, err := NewRandomSampler(n, RandomConfig{Seed: 4})
					if err != nil {
						t.Fatal(err)
					}
					share, err := NewShareSampler(all, world, rank, drop)
					got := indices(t, 3)(share, err)
					d, err := NewDistributedSampler(n, world, rank, SamplerConfig{Shuffle: true, Seed: 4, DropLast: drop})
					if want := indices(t, 3)(d, err); !slices.Equal(got, want) {
						t.Errorf("%d over %d, rank %d, drop %v: %v, want %v", n, world, rank, drop, got, want)
					}
				}
			}
		}
	}
}

func TestWeightedSamplerByWeight(t *testing.T) {
	s, err := NewWeightedSampler([]float64{1, 0, 3, 4, 0, 2}, WeightedConfig{Samples: 10000})
	if err != nil {
		t.Fatal(err)
	}
	first := indices(t, 0)(s, nil)
	counts(t, first, []float64{1000, 0, 3000, 4000, 0, 2000})
	if slices.Equal(first, indices(t, 1)(s, nil)) {
		t.Error("two epochs are alike")
	}
	if s, err = NewWeightedSampler([]float64{5e-324, 0}, WeightedConfig{Samples: 100}); err != nil {
		t.Fatal(err)
	}
	counts(t, indices(t, 0)(s, nil), []float64{100, 0})
}

// The columns of the alias method add up to the weights.
func TestAliasesAddUp(t *testing.T) {
	for n := 1; n <= 40; n++ {
		weights := make([]float64, n)
		sum := 0.0
		for i := range weights {
			weights[i] = float64((i * i * 7) % 11)
			sum += weights[i]
		}
		if sum == 0 {
			weights[0], sum = 1, 1
		}
		got := make([]float64, n)
		for i, a := range newAliases(weights, sum) {
			got[i] += a.keep * sum / float64(n)
			got[a.other] += (1 - a.keep) * sum / float64(n)
		}
		for i, w := range weights {
			if math.Abs(got[i]-w) > 1e-9*sum || w == 0 && got[i] != 0 {
				t.Errorf("%d weights: %v, want %v", n, got, weights)
				break
			}
		}
	}
}

// With Once, a sample of three times the weight comes first three times as often,
// and all come in the end.
func TestWeightedSamplerOnce(t *testing.T) {
	s, err := NewWeightedSampler([]float64{1, 0, 3}, WeightedConfig{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	for epoch := range 4000 {
		got := indices(t, epoch)(s, nil)
		first = append(first, got[0])
		if slices.Sort(got); !slices.Equal(got, []int{0, 2}) {
			t.Fatalf("drew %v", got)
		}
	}
	counts(t, first, []float64{1000, 0, 3000})
}

func TestSamplersRefuse(t *testing.T) {
	third := func(_ any, err error) error { return err }
	all := sequential(t, 3)
	for want, err := range map[string]error{
		"-1 samples":             third(NewSequentialSampler(-1)),
		"-2 samples":             third(NewRandomSampler(-2, RandomConfig{})),
		"-3 samples an epoch":    third(NewRandomSampler(1, RandomConfig{Samples: -3})),
		"4 of 3 samples":         third(NewRandomSampler(3, RandomConfig{Samples: 4})),
		"4 of 0 samples":         third(NewRandomSampler(0, RandomConfig{Samples: 4, Replace: true})),
		"a subset with sample":   third(NewSubsetSampler([]int{-1}, nil)),
		"batches of 0":           third(NewBatchSampler(all, 0, false)),
		"rank 2 is outside":      third(NewEvalSampler(3, 2, 2)),
		"rank -1 of a world":     third(NewShareSampler(all, 2, -1, false)),
		"rank 0 of a world of 0": third(NewShareSampler(all, 0, 0, false)),
		"weight 1 is NaN":        third(NewWeightedSampler([]float64{1, math.NaN()}, WeightedConfig{})),
		"weight 0 is -1":         third(NewWeightedSampler([]float64{-1}, WeightedConfig{})),
		"weight 0 is +Inf":       third(NewWeightedSampler([]float64{math.Inf(1)}, WeightedConfig{})),
		"add up to 0":            third(NewWeightedSampler([]float64{0}, WeightedConfig{})),
		"add up to +Inf":         third(NewWeightedSampler([]float64{math.MaxFloat64, math.MaxFloat64}, WeightedConfig{})),
		"of 1 that have":         third(NewWeightedSampler([]float64{0, 1}, WeightedConfig{Once: true, Samples: 2})),
		"-4 samples an epoch":    third(NewWeightedSampler([]float64{0, 1}, WeightedConfig{Samples: -4})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "trainer: sampler: ") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
