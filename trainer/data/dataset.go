package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Dataset is samples by number. At is called by several goroutines at a time, and
// may return memory that it shares: whoever receives a sample does not change it.
type Dataset[T any] interface {
	Len() int
	At(i int) (T, error) // 0 ≤ i < Len
}

// A Slice is a Dataset in memory.
type Slice[T any] []T

// Len is the number of samples.
func (s Slice[T]) Len() int { return len(s) }

// At is sample i.
func (s Slice[T]) At(i int) (T, error) { return s[i], nil }

// A Func is a Dataset of N samples that F computes or reads.
type Func[T any] struct {
	N int
	F func(i int) (T, error)
}

// Len is the number of samples.
func (f Func[T]) Len() int { return f.N }

// At is sample i.
func (f Func[T]) At(i int) (T, error) { return f.F(i) }

// A Subset is some samples of a set.
type Subset[T any] struct {
	set     Dataset[T]
	indices []int
}

// NewSubset is the samples of a set at indices, which it copies, in that order.
func NewSubset[T any](set Dataset[T], indices []int) (*Subset[T], error) {
	for _, i := range indices {
		if i < 0 || i >= set.Len() {
			return nil, fmt.Errorf("data: a subset with sample %d of %d", i, set.Len())
		}
	}
	return &Subset[T]{set: set, indices: slices.Clone(indices)}, nil
}

// Len is the number of samples.
func (s *Subset[T]) Len() int { return len(s.indices) }

// At is sample i of the subset.
func (s *Subset[T]) At(i int) (T, error) { return s.set.At(s.indices[i]) }

// Split cuts a set at random into parts of the lengths given, which share no
// sample and have all: the lengths add up to that of the set. The same seed gives
// the same parts, on any machine.
func Split[T any](set Dataset[T], seed uint64, lengths ...int) ([]*Subset[T], error) {
	rest := set.Len()
	for _, n := range lengths {
		if n < 0 || n > rest {
			return nil, fmt.Errorf("data: split of %d samples into %v", set.Len(), lengths)
		}
		rest -= n
	}
	if rest != 0 {
		return nil, fmt.Errorf("data: split of %d samples into %v, which leaves %d over", set.Len(), lengths, rest)
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(set.Len())
	parts := make([]*Subset[T], len(lengths))
	for k, n := range lengths {
		parts[k], order = &Subset[T]{set: set, indices: order[:n:n]}, order[n:]
	}
	return parts, nil
}

// A Pair is a sample of two sets: what a model reads and what it should say.
type Pair[A, B any] struct {
	X A
	Y B
}

// Zip is the pairs of two sets of one length.
func Zip[A, B any](x Dataset[A], y Dataset[B]) (Dataset[Pair[A, B]], error) {
	if x.Len() != y.Len() {
		return nil, fmt.Errorf("data: zip of %d samples and %d", x.Len(), y.Len())
	}
	return Func[Pair[A, B]]{N: x.Len(), F: func(i int) (p Pair[A, B], err error) {
		if p.X, err = x.At(i); err != nil {
			return p, err
		}
		p.Y, err = y.At(i)
		return p, err
	}}, nil
}
