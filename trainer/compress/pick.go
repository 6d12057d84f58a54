package compress

// coarse is how many of a key's 31 bits the first look tells apart.
const coarse = 16

// A picker finds the greatest keys in two looks at them, each with a count by some of
// their bits, and in a third takes them. It keeps the room for the counts.
type picker struct {
	counts []int
	picked []uint32
}

// pick is the places of the count greatest keys, ascending. Of equal ones the first
// are taken. Keys are below 1<<31. The result is lent until the next call.
func (p *picker) pick(keys []uint32, count int) []uint32 {
	p.picked = p.picked[:0]
	if count <= 0 {
		return p.picked
	}
	// The least key that is taken, and how many of that key.
	high, left := p.bin(keys, count, func(key uint32) (uint32, bool) { return key >> (31 - coarse), true })
	low, equal := p.bin(keys, left, func(key uint32) (uint32, bool) {
		return key & (1<<(31-coarse) - 1), key>>(31-coarse) == high
	})
	threshold := high<<(31-coarse) | low
	for i, key := range keys {
		switch {
		case key > threshold:
		case key == threshold && equal > 0:
			equal--
		default:
			continue
		}
		p.picked = append(p.picked, uint32(i))
	}
	return p.picked
}

// bin is the bin in which the count-th greatest lies, and its place in there, from 1.
func (p *picker) bin(keys []uint32, count int, of func(key uint32) (bin uint32, counts bool)) (uint32, int) {
	if p.counts == nil {
		p.counts = make([]int, 1<<coarse)
	}
	clear(p.counts)
	for _, key := range keys {
		if b, ok := of(key); ok {
			p.counts[b]++
		}
	}
	for b := len(p.counts) - 1; b > 0; b-- {
		if p.counts[b] >= count {
			return uint32(b), count
		}
		count -= p.counts[b]
	}
	return 0, count
}
