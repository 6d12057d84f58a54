package trainer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// WeightedConfig says how a WeightedSampler draws.
type WeightedConfig struct {
	Seed uint64

	// Once draws no sample twice in an epoch: each is drawn of those that are left.
	// Otherwise each is drawn of all.
	Once bool
	// Samples is the length of an epoch. Zero: as many as there are weights, or with
	// Once as many as have one above zero.
	Samples int
}

// A WeightedSampler draws samples by weight, as torch's WeightedRandomSampler does
// though not in its order. With the inverse of each class's size for weights, it
// shows a model rare classes as often as common ones.
type WeightedSampler struct {
	weights []float64
	config  WeightedConfig
	table   []alias // to draw of all
	epoch   int
}

// NewWeightedSampler draws of as many samples as there are weights, which it
// copies. Weights are finite and not negative, and one at least is above zero; they
// need not add up to anything.
func NewWeightedSampler(weights []float64, c WeightedConfig) (*WeightedSampler, error) {
	if err := checkCount("weights", len(weights)); err != nil {
		return nil, err
	}
	positive, sum := 0, 0.0
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return nil, fmt.Errorf("trainer: sampler: weight %d is %v", i, w)
		}
		if w > 0 {
			positive++
		}
		sum += w
	}
	if positive == 0 || math.IsInf(sum, 1) {
		return nil, fmt.Errorf("trainer: sampler: %d weights that add up to %v", len(weights), sum)
	}
	if c.Samples == 0 {
		c.Samples = len(weights)
		if c.Once {
			c.Samples = positive
		}
	}
	if err := checkCount("samples an epoch", c.Samples); err != nil {
		return nil, err
	}
	if c.Once && c.Samples > positive {
		return nil, fmt.Errorf("trainer: sampler: %d samples, each at most once, of %d that have a weight", c.Samples, positive)
	}
	s := &WeightedSampler{weights: slices.Clone(weights), config: c}
	if !c.Once {
		s.table = newAliases(weights, sum)
	}
	return s, nil
}

// SetEpoch chooses what is drawn.
func (s *WeightedSampler) SetEpoch(epoch int) { s.epoch = epoch }

// Len is the number of samples of an epoch.
func (s *WeightedSampler) Len() int { return s.config.Samples }

// Indices are the samples of the epoch. The caller owns the slice.
func (s *WeightedSampler) Indices() []int {
	r := rand.New(rand.NewPCG(s.config.Seed, uint64(s.epoch)))
	if s.config.Once {
		return drawOnce(r, s.weights, s.config.Samples)
	}
	drawn := make([]int, s.config.Samples)
	for k := range drawn {
		i := r.IntN(len(s.table))
		if r.Float64() >= s.table[i].keep {
			i = s.table[i].other
		}
		drawn[k] = i
	}
	return drawn
}

// An alias is a column of the alias method: all columns are equally likely, and of
// each its own index is drawn with probability keep, else the other.
type alias struct {
	keep  float64
	other int
}

// newAliases cuts the weights into columns of one height, of two weights at most:
// then a draw takes two random numbers, however many weights there are.
//
// Source: M. D. Vose, "A linear algorithm for generating random numbers with a
// given distribution", IEEE Trans. Software Eng. 17(9), 1991.
func newAliases(weights []float64, sum float64) []alias {
	n := len(weights)
	table := make([]alias, n)
	left := make([]float64, n) // of each weight, in units of a column
	var small, large []int
	for i, w := range weights {
		left[i] = w / sum * float64(n)
		if left[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		table[s] = alias{keep: left[s], other: l}
		left[l] -= 1 - left[s]
		if left[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// What rounding leaves over fills its own column, but for a weight of zero.
	for _, i := range large {
		table[i] = alias{keep: 1, other: i}
	}
	heaviest := slices.Index(weights, slices.Max(weights))
	for _, i := range small {
		table[i] = alias{keep: 1, other: i}
		if weights[i] == 0 {
			table[i] = alias{keep: 0, other: heaviest}
		}
	}
	return table
}

// drawOnce draws k different indices, each by weight of those that are left. The
// times at which clocks of these rates first strike are in just that order.
//
// Source: P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a
// reservoir", Information Processing Letters 97(5), 2006.
func drawOnce(r *rand.Rand, weights []float64, k int) []int {
	type strike struct {
		at    float64
		index int
	}
	strikes := make([]strike, 0, len(weights))
	for i, w := range weights {
		if w > 0 {
			strikes = append(strikes, strike{r.ExpFloat64() / w, i})
		}
	}
	slices.SortFunc(strikes, func(a, b strike) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	drawn := make([]int, k)
	for i := range drawn {
		drawn[i] = strikes[i].index
	}
	return drawn
}
