package trainer

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// MaxSamples is the most samples a sampler deals or a partitioner cuts. From
// here on torch.randperm draws 64 bits a sample rather than 32, an order that
// is not reproduced here.
const MaxSamples = math.MaxUint32 / 20

// SamplerConfig says how a DistributedSampler deals. The zero value deals in
// order and pads; PyTorch's default is Shuffle: true.
type SamplerConfig struct {
	Shuffle bool
	Seed    uint64 // of the shuffle, the same on every rank

	// DropLast leaves out the last n mod world samples. When it is false some
	// samples are dealt twice instead, so that every rank still gets as many.
	DropLast bool
}

// A DistributedSampler deals the samples of a data set to the ranks of a world
// afresh each epoch, as torch.utils.data.DistributedSampler does and in its
// exact order. No word passes between the ranks: each computes the same
// permutation of all samples and takes every world-th, beginning at its rank.
//
// Every rank gets the same number of samples, so every rank takes the same
// number of steps, which collectives need. It has no locks: set the epoch and
// read the indices in one goroutine.
type DistributedSampler struct {
	n, world, rank int
	config         SamplerConfig
	epoch          int
}

// NewDistributedSampler deals n samples for one rank of a world.
func NewDistributedSampler(n, world, rank int, c SamplerConfig) (*DistributedSampler, error) {
	if err := checkCount("samples", n); err != nil {
		return nil, err
	}
	switch {
	case world < 1:
		return nil, fmt.Errorf("trainer: sampler: a world of %d, want at least 1", world)
	case rank < 0 || rank >= world:
		return nil, fmt.Errorf("trainer: sampler: rank %d is outside the world of %d", rank, world)
	}
	return &DistributedSampler{n: n, world: world, rank: rank, config: c}, nil
}

// SetEpoch chooses the permutation: it is seeded with Seed plus the epoch.
// Without it, or without Shuffle, all epochs are dealt alike.
func (s *DistributedSampler) SetEpoch(epoch int) { s.epoch = epoch }

// Len is the number of samples of this rank, and of each other rank.
func (s *DistributedSampler) Len() int {
	full := s.n / s.world
	if s.config.DropLast || s.n%s.world == 0 {
		return full
	}
	return full + 1
}

// Indices are this rank's samples of the epoch, in the order of use. The
// caller owns the slice.
//
// Torch pads by repeating the permutation from its start until the world is
// served, however short the data; that is what the remainder does here.
func (s *DistributedSampler) Indices() []int {
	order := func(i int) int { return i }
	if s.config.Shuffle {
		p := torchPerm(s.n, s.config.Seed+uint64(s.epoch))
		order = func(i int) int { return p[i] }
	}
	mine := make([]int, s.Len())
	for i := range mine {
		mine[i] = order((s.rank + i*s.world) % s.n)
	}
	return mine
}

// Batches cuts indices into batches of a size, in order. The last may be
// shorter; dropLast leaves it out then. The batches share the slice's memory.
// A size below 1 panics, as it does in slices.Chunk.
func Batches(indices []int, size int, dropLast bool) iter.Seq[[]int] {
	if dropLast && size > 0 {
		indices = indices[:len(indices)/size*size]
	}
	return slices.Chunk(indices, size)
}
