package trainer

import "fmt"

// An EvalSampler deals the samples of a test set to the ranks of a world so that
// each is counted exactly once: some ranks get one more than others, none gets one
// that another has. A [DistributedSampler] would repeat the first ones, and with
// them a metric would depend on the number of ranks.
//
// So ranks take different numbers of steps, and there is nothing collective within
// them: add the counts up at the end, by one all_reduce.
type EvalSampler struct{ n, world, rank int }

// NewEvalSampler deals n samples for one rank of a world.
func NewEvalSampler(n, world, rank int) (*EvalSampler, error) {
	if _, err := NewDistributedSampler(n, world, rank, SamplerConfig{}); err != nil {
		return nil, err
	}
	return &EvalSampler{n: n, world: world, rank: rank}, nil
}

// SetEpoch does nothing: a test is the same in all epochs.
func (s *EvalSampler) SetEpoch(int) {}

// Len is the number of samples of this rank.
func (s *EvalSampler) Len() int {
	if s.rank < s.n%s.world {
		return s.n/s.world + 1
	}
	return s.n / s.world
}

// Indices are this rank's samples, which lie side by side, so that a disk reads
// them in one go. The caller owns the slice.
func (s *EvalSampler) Indices() []int {
	first := s.rank*(s.n/s.world) + min(s.rank, s.n%s.world)
	mine := inOrder(s.Len())
	for i := range mine {
		mine[i] += first
	}
	return mine
}

// A ShareSampler is one rank's share of any sampler's order: every world-th of its
// indices, beginning at the rank, as a [DistributedSampler] takes them of a
// permutation. So a [WeightedSampler] serves many ranks, each of which makes it
// alike. Ranks get equally many.
type ShareSampler struct {
	all         Sampler
	world, rank int
	dropLast    bool
}

// NewShareSampler shares s out. What does not divide by the world is left out with
// dropLast, and filled up from the order's beginning without.
func NewShareSampler(s Sampler, world, rank int, dropLast bool) (*ShareSampler, error) {
	if world < 1 || rank < 0 || rank >= world {
		return nil, fmt.Errorf("trainer: sampler: rank %d of a world of %d", rank, world)
	}
	return &ShareSampler{all: s, world: world, rank: rank, dropLast: dropLast}, nil
}

// SetEpoch chooses the order.
func (s *ShareSampler) SetEpoch(epoch int) { s.all.SetEpoch(epoch) }

// Len is the number of samples of this rank, and of each other rank.
func (s *ShareSampler) Len() int {
	n := s.all.Len()
	if s.dropLast {
		return n / s.world
	}
	return (n + s.world - 1) / s.world
}

// Indices are this rank's samples of the epoch. The caller owns the slice.
func (s *ShareSampler) Indices() []int {
	all := s.all.Indices()
	mine := make([]int, s.Len())
	for i := range mine {
		mine[i] = all[(s.rank+i*s.world)%len(all)]
	}
	return mine
}
