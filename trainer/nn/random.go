package nn

// A stream is a sequence of random numbers: SplitMix64, from Steele, Lea and
// Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014). Element
// k of a stream is as good a start of another one, so a stream for a sample of a
// layer of a step is a walk of keys and no state is shared: masks do not depend
// on which thread draws them, or in what order.
type stream uint64

const golden = 0x9E3779B97F4A7C15 // 2⁶⁴ over the golden ratio

// at is the stream that starts from element key of s.
func (s stream) at(key uint64) stream {
	s += stream((key + 1) * golden)
	return stream(mix(uint64(s)))
}

// next is 64 random bits.
func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// uniform is a number in [-bound, bound), a multiple of bound/2²³.
func (s *stream) uniform(bound float32) float32 {
	return (float32(s.next()>>40)/(1<<23) - 1) * bound
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
