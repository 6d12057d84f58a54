package draw

import (
	"math"
	"testing"
)

// Streams that start from different keys have nothing in common, and their bits
// are even.
func TestStream(t *testing.T) {
	seen := make(map[uint64]bool)
	ones, n := 0, 0
	for a := range uint64(10) {
		for b := range uint64(10) {
			s := Stream(1).At(a).At(b)
			for range 10 {
				v := s.Next()
				if seen[v] {
					t.Fatalf("stream %d, %d repeats a number", a, b)
				}
				seen[v] = true
				for ; v != 0; v &= v - 1 {
					ones++
				}
				n += 64
			}
		}
	}
	if mean := float64(ones) / float64(n); math.Abs(mean-0.5) > 2/math.Sqrt(float64(n)) {
		t.Errorf("%v of the bits are ones", mean)
	}
}

// The first numbers of SplitMix64 from state 0, as published with its source.
func TestSplitMix64(t *testing.T) {
	s := Stream(0)
	for _, want := range []uint64{0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F} {
		if got := s.Next(); got != want {
			t.Errorf("got %x, want %x", got, want)
		}
	}
}
