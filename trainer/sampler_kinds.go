package trainer

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
)

// A Sampler says which samples of a set are used, in which order, an epoch at a
// time. What it says is a function of its making and the epoch alone, so that ranks
// agree without a word and a run that goes on finds the same order again.
type Sampler interface {
	SetEpoch(epoch int) // without it, epoch 0
	Len() int           // samples of an epoch, the same in all of them
	Indices() []int     // Len of them, the caller's
}

var (
	_ Sampler = (*DistributedSampler)(nil)
	_ Sampler = (*RandomSampler)(nil)
	_ Sampler = (*WeightedSampler)(nil)
	_ Sampler = (*SubsetSampler)(nil)
	_ Sampler = (*EvalSampler)(nil)
	_ Sampler = (*ShareSampler)(nil)
)

// checkCount is for every sampler's number of samples.
func checkCount(what string, n int) error {
	if n < 0 || n > MaxSamples {
		return fmt.Errorf("trainer: sampler: %d %s, want 0 to %d", n, what, MaxSamples)
	}
	return nil
}

// NewSequentialSampler uses n samples in order, in all epochs alike.
func NewSequentialSampler(n int) (*DistributedSampler, error) {
	return NewDistributedSampler(n, 1, 0, SamplerConfig{})
}

// RandomConfig says how a RandomSampler draws.
type RandomConfig struct {
	Seed uint64

	// Replace draws each sample from all of them, so that some come twice and some
	// not at all. Otherwise an epoch is a permutation, or the beginning of one.
	Replace bool
	// Samples is the length of an epoch. Zero: as many as there are.
	Samples int
}

// A RandomSampler uses samples in random order, another in each epoch: without
// Replace that of torch.randperm, seeded with Seed plus the epoch.
type RandomSampler struct {
	n      int
	config RandomConfig
	epoch  int
}

// NewRandomSampler draws of n samples.
func NewRandomSampler(n int, c RandomConfig) (*RandomSampler, error) {
	if c.Samples == 0 {
		c.Samples = n
	}
	if err := cmp.Or(checkCount("samples", n), checkCount("samples an epoch", c.Samples)); err != nil {
		return nil, err
	}
	if c.Samples > n && (!c.Replace || n == 0) {
		return nil, fmt.Errorf("trainer: sampler: %d of %d samples, each at most once", c.Samples, n)
	}
	return &RandomSampler{n: n, config: c}, nil
}

// SetEpoch chooses the order.
func (s *RandomSampler) SetEpoch(epoch int) { s.epoch = epoch }

// Len is the number of samples of an epoch.
func (s *RandomSampler) Len() int { return s.config.Samples }

// Indices are the samples of the epoch. The caller owns the slice.
func (s *RandomSampler) Indices() []int {
	if !s.config.Replace {
		return torchPerm(s.n, s.config.Seed+uint64(s.epoch))[:s.config.Samples]
	}
	r := rand.New(rand.NewPCG(s.config.Seed, uint64(s.epoch)))
	drawn := make([]int, s.config.Samples)
	for i := range drawn {
		drawn[i] = r.IntN(s.n)
	}
	return drawn
}

// A SubsetSampler uses some samples of a set, as another sampler of their number
// orders them.
type SubsetSampler struct {
	indices []int
	order   Sampler
}

// NewSubsetSampler uses the samples at indices, which it copies. order deals as
// many: nil means as they stand.
func NewSubsetSampler(indices []int, order Sampler) (*SubsetSampler, error) {
	if err := checkCount("samples", len(indices)); err != nil {
		return nil, err
	}
	for _, i := range indices {
		if i < 0 || i >= MaxSamples {
			return nil, fmt.Errorf("trainer: sampler: a subset with sample %d, want 0 to %d", i, MaxSamples-1)
		}
	}
	if order == nil {
		var err error
		if order, err = NewSequentialSampler(len(indices)); err != nil {
			return nil, err
		}
	}
	return &SubsetSampler{indices: slices.Clone(indices), order: order}, nil
}

// SetEpoch chooses the order.
func (s *SubsetSampler) SetEpoch(epoch int) { s.order.SetEpoch(epoch) }

// Len is the number of samples of an epoch.
func (s *SubsetSampler) Len() int { return s.order.Len() }

// Indices are the samples of the epoch. The caller owns the slice. An order of more
// samples than the subset has panics here, as indexing does.
func (s *SubsetSampler) Indices() []int {
	order := s.order.Indices()
	for k, i := range order {
		order[k] = s.indices[i]
	}
	return order
}

// A BatchSampler cuts a sampler's order into batches.
type BatchSampler struct {
	sampler  Sampler
	size     int
	dropLast bool
}

// NewBatchSampler cuts batches of a size. The last of an epoch may be shorter;
// dropLast leaves it out then.
func NewBatchSampler(s Sampler, size int, dropLast bool) (*BatchSampler, error) {
	if size < 1 || size > MaxSamples {
		return nil, fmt.Errorf("trainer: sampler: batches of %d, want 1 to %d", size, MaxSamples)
	}
	return &BatchSampler{sampler: s, size: size, dropLast: dropLast}, nil
}

// SetEpoch chooses the order.
func (s *BatchSampler) SetEpoch(epoch int) { s.sampler.SetEpoch(epoch) }

// Len is the number of batches of an epoch.
func (s *BatchSampler) Len() int {
	n := s.sampler.Len() / s.size
	if !s.dropLast && s.sampler.Len()%s.size > 0 {
		n++
	}
	return n
}

// Batches are those of the epoch. The caller owns them.
func (s *BatchSampler) Batches() iter.Seq[[]int] {
	return Batches(s.sampler.Indices(), s.size, s.dropLast)
}
