package trainer

import "math/bits"

// The parameters of MT19937: its state in words, the distance of the word that
// is folded in, the last row of the recurrence's matrix, and the split of a
// word into its top bit and the rest.
const (
	mtWords  = 624
	mtOffset = 397
	mtMatrix = 0x9908b0df
	mtTop    = 1 << 31
)

// mt19937 is the Mersenne Twister, the generator behind both torch.randperm
// and Python's random, which is the only reason to want it here: math/rand/v2
// is faster, and better, but would deal the samples in another order than the
// programs whose runs Peermesh must be comparable with.
//
// Source: M. Matsumoto, T. Nishimura, "Mersenne Twister: a 623-dimensionally
// equidistributed uniform pseudo-random number generator", ACM TOMACS 8(1),
// 1998, and the authors' initialisation of 2002 (mt19937ar).
type mt19937 struct {
	state [mtWords]uint32
	used  int // words of state that have been given out
}

// seededMT is the paper's init_genrand, as torch.Generator.manual_seed does it.
func seededMT(seed uint32) *mt19937 {
	m := &mt19937{used: mtWords}
	m.state[0] = seed
	for i := 1; i < mtWords; i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	return m
}

// keyedMT is init_by_array, for seeds wider than a word. The key may not be empty.
func keyedMT(key []uint32) *mt19937 {
	m := seededMT(19650218)
	s := &m.state
	i, j := 1, 0
	advance := func() { // the first word always mirrors the last
		if i++; i == mtWords {
			s[0], i = s[mtWords-1], 1
		}
	}
	for range max(mtWords, len(key)) {
		s[i] = s[i] ^ (s[i-1]^s[i-1]>>30)*1664525 + key[j] + uint32(j)
		advance()
		j = (j + 1) % len(key)
	}
	for range mtWords - 1 {
		s[i] = s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941 - uint32(i)
		advance()
	}
	s[0] = mtTop // so that the state is never all zero
	return m
}

// pythonMT is CPython's random.Random(seed): the key is the seed in words,
// the lowest first, and zero is one word long (_randommodule.c, random_seed).
func pythonMT(seed uint64) *mt19937 {
	key := []uint32{uint32(seed), uint32(seed >> 32)}
	if key[1] == 0 {
		key = key[:1]
	}
	return keyedMT(key)
}

// uint32 draws the next word, tempered.
func (m *mt19937) uint32() uint32 {
	if m.used == mtWords {
		m.twist()
	}
	y := m.state[m.used]
	m.used++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// twist takes the recurrence a whole state further.
func (m *mt19937) twist() {
	s := &m.state
	for i := range s {
		y := s[i]&mtTop | s[(i+1)%mtWords]&(mtTop-1)
		s[i] = s[(i+mtOffset)%mtWords] ^ y>>1 ^ -(y&1)&mtMatrix
	}
	m.used = 0
}

// below draws evenly from [0, n), 0 < n < 2³¹, as CPython's _randbelow does:
// just enough high bits, again until they are below n.
func (m *mt19937) below(n int) int {
	shift := 32 - bits.Len32(uint32(n))
	for {
		if r := int(m.uint32() >> shift); r < n {
			return r
		}
	}
}

// torchPerm is torch.randperm(n) on the CPU under that seed: Fisher–Yates from
// the front. Torch reduces by modulo, without rejection, and so do we.
func torchPerm(n int, seed uint64) []int {
	p := inOrder(n)
	m := seededMT(uint32(seed))
	for i := range n - 1 {
		j := i + int(m.uint32()%uint32(n-i))
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// pythonShuffle is what random.Random(seed).shuffle leaves of 0 … n−1:
// Fisher–Yates from the back.
func pythonShuffle(n int, seed uint64) []int {
	p := inOrder(n)
	m := pythonMT(seed)
	for i := n - 1; i > 0; i-- {
		j := m.below(i + 1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

func inOrder(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}
