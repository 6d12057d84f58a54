package trainer

import "fmt"

// ElasticConfig says how an ElasticSampler deals. One of Batch and Global is given.
type ElasticConfig struct {
	Shuffle bool
	Seed    uint64 // of the shuffle, the same on every rank

	// Batch is how many samples each rank takes in a step: a step of a larger world
	// takes more.
	Batch int
	// Global is how many all ranks take together: a step is the same whatever the
	// world, up to the order of sums.
	Global int
	// DropLast ends an epoch where fewer samples are left than a step takes, so that all
	// steps are alike: what is left is not used in it. The first step takes what there is.
	DropLast bool
}

// An ElasticSampler deals the samples of a data set in a world whose ranks change
// in the middle of an epoch, so that each is used once an epoch, by one rank.
//
// The epoch is one permutation, that of a [DistributedSampler], and one number:
// how many of its samples have been used. A step takes the next ones, and its
// ranks share them out by turns. While the world stays the same, these are the
// batches that a DistributedSampler deals, without its padding: the last step of
// an epoch has what is left, on some ranks a sample more than on others, or none, if it is not
// dropped.
// Average by [Share.Weight] rather than by the number of ranks.
//
// It keeps no position, for a step that fails must be dealt again: that is in a
// [Progress], which all ranks have alike.
type ElasticSampler struct {
	n      int
	config ElasticConfig

	epoch int64 // whose permutation it is
	perm  []int
}

// NewElasticSampler deals n samples.
func NewElasticSampler(n int, c ElasticConfig) (*ElasticSampler, error) {
	if err := checkCount("samples", n); err != nil {
		return nil, err
	}
	switch {
	case c.Batch < 0 || c.Global < 0 || (c.Batch > 0) == (c.Global > 0):
		return nil, fmt.Errorf("trainer: sampler: a batch of %d each and of %d together: want one of them", c.Batch, c.Global)
	case max(c.Batch, c.Global) > MaxSamples:
		return nil, fmt.Errorf("trainer: sampler: a batch of %d: at most %d", max(c.Batch, c.Global), MaxSamples)
	}
	return &ElasticSampler{n: n, config: c, epoch: -1}, nil
}

// Len is the number of samples of an epoch, of all ranks, with those that are dropped.
func (s *ElasticSampler) Len() int { return s.n }

// A Share is what one rank does in a step.
type Share struct {
	Progress
	Indices []int // of this rank's samples, in order; there may be none
	Total   int   // samples of all ranks, at least one
	Last    bool  // in a world that stays the same, no other follows in this epoch
}

// Weight is this rank's part of an average over all samples of the step: the sum
// over the ranks of weight times mean is the mean.
func (s Share) Weight() float64 { return float64(len(s.Indices)) / float64(s.Total) }

// Deal is what a rank of a world of size ranks does in the next step after p, and
// false at the end of the epoch. The caller owns the indices.
func (s *ElasticSampler) Deal(p Progress, rank, size int) (Share, bool) {
	step := s.config.Global
	if s.config.Batch > 0 {
		step = min(s.config.Batch, s.n) * size
	}
	from := int(min(p.Consumed, int64(s.n)))
	if !s.more(from, step) {
		return Share{}, false
	}
	s.shuffle(p.Epoch)
	to := min(from+step, s.n)
	share := Share{Progress: p, Total: to - from, Last: !s.more(to, step)}
	for i := from + rank; i < to; i += size {
		share.Indices = append(share.Indices, s.at(i))
	}
	return share, true
}

// more reports whether an epoch of which so many samples have been used has another step, of
// that many.
func (s *ElasticSampler) more(used, step int) bool {
	left := s.n - used
	return left > 0 && (left >= step || used == 0 || !s.config.DropLast)
}

func (s *ElasticSampler) at(i int) int {
	if s.perm == nil {
		return i
	}
	return s.perm[i]
}

func (s *ElasticSampler) shuffle(epoch int64) {
	if s.config.Shuffle && s.epoch != epoch {
		s.perm, s.epoch = torchPerm(s.n, s.config.Seed+uint64(epoch)), epoch
	}
}
