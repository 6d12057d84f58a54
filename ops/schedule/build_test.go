package schedule

import (
	"slices"
	"testing"
)

func TestTidy(t *testing.T) {
	s := Schedule{Name: "x", Ranks: 3, Chunks: 8}
	s.add(1, Move{From: 1, To: 0, Src: 3, Dst: 3, N: 1})
	for _, m := range []Move{
		{From: 1, To: 0, Src: 4, Dst: 4, N: 2},
		{From: 0, To: 2, Src: 1, Dst: 2, N: 1, Reduce: true},
		{From: 1, To: 0, Src: 3, Dst: 3, N: 1},
		{From: 0, To: 2, Src: 0, Dst: 1, N: 1, Reduce: true},
		{From: 0, To: 2, Src: 2, Dst: 3, N: 1},               // copies
		{From: 0, To: 2, Src: 3, Dst: 5, N: 1},               // lands further on
		{From: 1, To: 0, Src: 6, Dst: 6, N: 1, Reduce: true}, // folds
		{From: 1, To: 2, Src: 7, Dst: 7, N: 1},               // goes elsewhere
	} {
		s.add(0, m)
	}
	want := "x: 3 ranks, 8 chunks\n" +
		"  0   0→2 [0:2]→[1:3]+  0→2 [2]→[3]  0→2 [3]→[5]  1→0 [3:6]  1→0 [6]+  1→2 [7]\n" +
		"  1   1→0 [3]\n"
	if got := s.tidy().String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		m    Move
		want []Move
	}{
		{Move{Src: 1, Dst: 1, N: 3}, []Move{{Src: 1, Dst: 1, N: 3}}},
		{Move{Src: 2, Dst: 2, N: 3}, []Move{{Src: 2, Dst: 2, N: 3}}},
		{Move{Src: 3, Dst: 3, N: 4}, []Move{{Src: 3, Dst: 3, N: 2}, {Src: 0, Dst: 0, N: 2}}},
		{Move{Src: 4, Dst: 1, N: 5}, []Move{{Src: 4, Dst: 1, N: 1}, {Src: 0, Dst: 2, N: 3}, {Src: 3, Dst: 0, N: 1}}},
	} {
		if got := c.m.wrap(nil, 5); !slices.Equal(got, Round(c.want)) {
			t.Errorf("%v: %v, want %v", c.m, got, c.want)
		}
	}
}

// Messages cost the processors even where they cost no bytes: at most two to a
// partner in Bruck's all-gather, one a chunk in what is strided.
func TestMessages(t *testing.T) {
	for n := 1; n <= most; n++ {
		for _, c := range []struct {
			s     Schedule
			limit int // of one rank, over all rounds
		}{
			{Bruck(n), 2 * ceilLog(n)},
			{Halving(n), ceilLog(n)},
			{Cascade(n), n - 1},
			{BruckAllToAll(n), 3 * n / 2},
		} {
			count := make([]int, n)
			for _, round := range c.s.Rounds {
				for _, m := range round {
					count[m.From]++
				}
			}
			if got := slices.Max(count); got > c.limit {
				t.Errorf("%s of %d: %d messages, want %d at most", c.s.Name, n, got, c.limit)
			}
		}
	}
}

// The halves of a node pair up in both directions, and only the rank that is
// left over shares its partner.
func TestOpposite(t *testing.T) {
	for n := 2; n <= most; n++ {
		v := nodeOf(0, n)
		spare := v.mid
		for r := range n {
			o := v.opposite(r, spare)
			if (o < v.mid) == (r < v.mid) {
				t.Errorf("of %d: %d pairs up with %d of its own half", n, r, o)
			}
			if over := n%2 == 1 && r == v.mid-1; over != (v.opposite(o, spare) != r) {
				t.Errorf("of %d: %d pairs up with %d, that with %d", n, r, o, v.opposite(o, spare))
			}
		}
		rounds := map[int]bool{}
		nodes(0, n, func(v node) { rounds[v.round] = true })
		if len(rounds) != ceilLog(n) {
			t.Errorf("of %d: nodes in %d rounds", n, len(rounds))
		}
	}
}

// A reduction of a large vector needs chunk r on rank r, which Halving leaves
// there for powers of two only; Check finds out.
func TestReduceOfWhatIsNoReduceScatter(t *testing.T) {
	for n := 2; n <= 9; n++ {
		ok := n&(n-1) == 0
		if err := Check(Reduce(Halving(n), 0), ReduceContract(0)); (err == nil) != ok {
			t.Errorf("of %d: %v", n, err)
		}
		if err := Check(Broadcast(Halving(n), n-1), BroadcastContract(n-1)); ok && err != nil {
			t.Errorf("of %d: %v", n, err)
		}
	}
}
