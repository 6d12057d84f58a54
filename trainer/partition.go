package trainer

import "fmt"

// A DataPartitioner cuts a data set once, into parts that share no sample and
// keep for all epochs. It is the DataPartitioner of the tutorial "Writing
// Distributed Applications with PyTorch", down to the order of the samples,
// which is that of Python's random.Random(seed).shuffle.
//
// Its neighbour DistributedSampler deals afresh each epoch and gives all ranks
// as many; prefer that unless you reproduce the tutorial.
type DataPartitioner struct{ parts [][]int }

// NewDataPartitioner shuffles n samples and cuts one part for each fraction:
// the whole part of fraction × n samples, so that what rounding leaves over
// belongs to nobody. Equal fractions give equal parts.
func NewDataPartitioner(n int, fractions []float64, seed uint64) (*DataPartitioner, error) {
	if n < 0 || n > MaxSamples {
		return nil, fmt.Errorf("trainer: partitioner: %d samples, want 0 to %d", n, MaxSamples)
	}
	rest := pythonShuffle(n, seed)
	p := &DataPartitioner{parts: make([][]int, len(fractions))}
	for i, f := range fractions {
		if !(f >= 0 && f <= 1) { // so put, a NaN fails too
			return nil, fmt.Errorf("trainer: partitioner: fraction %d is %v, want 0 to 1", i, f)
		}
		k := int(f * float64(n))
		if k > len(rest) {
			return nil, fmt.Errorf("trainer: partitioner: the fractions %v add up to more than 1", fractions)
		}
		p.parts[i], rest = rest[:k:k], rest[k:]
	}
	return p, nil
}

// Use returns part i, which a program takes with its rank. It panics when
// there is no such part, as indexing does. All calls share one slice.
func (p *DataPartitioner) Use(i int) []int { return p.parts[i] }
