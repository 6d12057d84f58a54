package trainer

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func elasticSampler(t *testing.T, n int, c ElasticConfig) *ElasticSampler {
	t.Helper()
	s, err := NewElasticSampler(n, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// In a world that stays the same the batches are a DistributedSampler's, in every
// epoch, as far as that does not pad.
func TestElasticSamplerDealsAsTorch(t *testing.T) {
	const n, batch, epochs = 1000, 7, 3
	for size := 1; size <= 5; size++ {
		for rank := range size {
			s := elasticSampler(t, n, ElasticConfig{Shuffle: true, Seed: 4, Batch: batch})
			torch, err := NewDistributedSampler(n, size, rank, SamplerConfig{Shuffle: true, Seed: 4, DropLast: true})
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range epochs {
				torch.SetEpoch(epoch)
				p := Progress{Epoch: int64(epoch)}
				for want := range Batches(torch.Indices(), batch, true) {
					share, ok := s.Deal(p, rank, size)
					if !ok || !slices.Equal(share.Indices, want) || share.Total != batch*size {
						t.Fatalf("rank %d of %d, %v: got %v, want %v", rank, size, p, share.Indices, want)
					}
					p.Consumed += int64(share.Total)
				}
			}
		}
	}
}

// Whatever worlds follow each other, an epoch has every sample once, and the
// weights of a step add up to 1.
func TestElasticSamplerLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rng.IntN(200)
		c := ElasticConfig{Shuffle: rng.IntN(2) == 0, Batch: 1 + rng.IntN(9)}
		if rng.IntN(3) == 0 {
			c.Batch, c.Global = 0, 1+rng.IntN(40)
		}
		s := elasticSampler(t, n, c)
		seen := make([]int, n)
		p := Progress{Epoch: int64(rng.IntN(3))}
		for more := true; more; {
			size := 1 + rng.IntN(6)
			weight, total := 0.0, 0
			for rank := range size {
				var share Share
				if share, more = s.Deal(p, rank, size); !more {
					break
				}
				if most := (share.Total + size - 1) / size; len(share.Indices) > most || len(share.Indices) < share.Total/size {
					t.Fatalf("rank %d of %d has %d of %d samples", rank, size, len(share.Indices), share.Total)
				}
				for _, i := range share.Indices {
					seen[i]++
				}
				weight += share.Weight()
				total = share.Total
			}
			if more && math.Abs(weight-1) > 1e-12 {
				t.Fatalf("weights add up to %v", weight)
			}
			if rng.IntN(4) > 0 { // else the step failed, and is dealt again
				p.Consumed += int64(total)
				continue
			}
			for rank := range size {
				share, _ := s.Deal(p, rank, size)
				for _, i := range share.Indices {
					seen[i]--
				}
			}
		}
		for i, k := range seen {
			if k != 1 {
				t.Fatalf("%d samples, %+v: sample %d was used %d times", n, c, i, k)
			}
		}
	}
}

func TestElasticSamplerChecks(t *testing.T) {
	for says, c := range map[string]struct {
		n int
		c ElasticConfig
	}{
		"-1 samples":       {-1, ElasticConfig{Batch: 1}},
		"want one of them": {5, ElasticConfig{}},
		"of 2 together":    {5, ElasticConfig{Batch: 1, Global: 2}},
		"a batch of -1":    {5, ElasticConfig{Batch: -1, Global: 2}},
		"at most":          {5, ElasticConfig{Batch: math.MaxInt}},
	} {
		if _, err := NewElasticSampler(c.n, c.c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	s := elasticSampler(t, 5, ElasticConfig{Global: 3})
	if s.Len() != 5 {
		t.Error(s.Len())
	}
	share, ok := s.Deal(Progress{Consumed: 3}, 1, 4)
	if want := (Share{Progress{Consumed: 3}, []int{4}, 2, true}); !ok || !reflect.DeepEqual(share, want) {
		t.Errorf("got %+v", share)
	}
	if share, ok = s.Deal(Progress{Consumed: 3}, 3, 4); !ok || len(share.Indices) != 0 || share.Weight() != 0 {
		t.Errorf("got %+v: the last step is for all ranks", share)
	}
	if _, ok = s.Deal(Progress{Consumed: 5}, 0, 4); ok {
		t.Error("a step after the last sample")
	}
}

// What is left over is dropped, but for a first step, and nobody misses the last one.
func TestElasticSamplerDropsLast(t *testing.T) {
	for _, c := range []struct {
		n, size int
		c       ElasticConfig
		want    []int // totals
	}{
		{10, 3, ElasticConfig{Global: 4}, []int{4, 4, 2}},
		{10, 3, ElasticConfig{Global: 4, DropLast: true}, []int{4, 4}},
		{8, 3, ElasticConfig{Global: 4, DropLast: true}, []int{4, 4}},
		{3, 1, ElasticConfig{Global: 4, DropLast: true}, []int{3}},
		{10, 2, ElasticConfig{Batch: 3, DropLast: true}, []int{6}},
		{10, 1, ElasticConfig{Batch: 3, DropLast: true}, []int{3, 3, 3}},
		{10, 4, ElasticConfig{Batch: 3, DropLast: true}, []int{10}},
		{0, 1, ElasticConfig{Batch: 3, DropLast: true}, nil},
	} {
		s := elasticSampler(t, c.n, c.c)
		var got []int
		var p Progress
		for last := false; ; {
			share, more := s.Deal(p, 0, c.size)
			if more == (last || c.n == 0) {
				t.Errorf("%+v: after %v of %d samples another step: %v", c.c, got, c.n, more)
			}
			if !more {
				break
			}
			got, last, p.Consumed = append(got, share.Total), share.Last, p.Consumed+int64(share.Total)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %d samples are dealt in steps of %v, want %v", c.c, c.n, got, c.want)
		}
	}
	s := elasticSampler(t, 10, ElasticConfig{Batch: 3, DropLast: true}) // a world that has grown
	if share, more := s.Deal(Progress{Consumed: 6}, 0, 2); more {
		t.Errorf("4 of 6 samples are left, and %+v is dealt", share)
	}
}
