package schedule

import (
	"testing"
	"time"
)

// A cycle is a ring's all-reduce, in price too, without its turn.
func TestCycle(t *testing.T) {
	for n := 1; n <= 17; n++ {
		s, ring := Cycle(n), AllReduce(Ring(n))
		if err := Check(s, AllReduceContract); err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
		if len(s.Rounds) != len(ring.Rounds) || s.Chunks != ring.Chunks {
			t.Errorf("%d ranks: %d rounds of %d chunks, a ring has %d of %d", n, len(s.Rounds), s.Chunks, len(ring.Rounds), ring.Chunks)
		}
		l := Uniform{20 * time.Millisecond, 25e6}
		if got, want := Price(s, 64<<20, l), Price(ring, 64<<20, l); got != want {
			t.Errorf("%d ranks: costs %v, a ring %v", n, got, want)
		}
		for i, round := range s.Rounds {
			for _, m := range round {
				if m.To != (m.From+1)%n {
					t.Fatalf("%d ranks, round %d: %d sends to %d", n, i, m.From, m.To)
				}
			}
		}
	}
	if got := Cycle(4).Algorithm(); got != "cycle" {
		t.Errorf("its algorithm is %q", got)
	}
}
