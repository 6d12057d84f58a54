// Package draw has random numbers that many threads draw in any order.
package draw

// A Stream is a sequence of random numbers: SplitMix64, from Steele, Lea and
// Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014). Element
// k of a stream is as good a start of another one, so a stream for a sample of a
// layer of a step is a walk of keys and no state is shared: masks do not depend
// on which thread draws them, or in what order.
type Stream uint64

const golden = 0x9E3779B97F4A7C15 // 2⁶⁴ over the golden ratio

// At is the stream that starts from element key of s.
func (s Stream) At(key uint64) Stream {
	s += Stream((key + 1) * golden)
	return Stream(mix(uint64(s)))
}

// Next is 64 random bits.
func (s *Stream) Next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// Uniform is a number in [-bound, bound), a multiple of bound/2²³.
func (s *Stream) Uniform(bound float32) float32 {
	return (float32(s.Next()>>40)/(1<<23) - 1) * bound
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
