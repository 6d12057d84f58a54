package schedule

import (
	"reflect"
	"strings"
	"testing"
)

func TestReverseTwiceForgetsOnlyTheFolds(t *testing.T) {
	s := BinomialGather(6) // it has none
	twice := s.Reverse().Reverse()
	if !reflect.DeepEqual(twice.Rounds, s.Rounds) {
		t.Errorf("got %vwant %v", twice, s)
	}
	for _, round := range Ring(4).Reverse().Rounds {
		for _, m := range round {
			if m.Reduce {
				t.Errorf("%v folds on the way back", m)
			}
		}
	}
}

func TestThenRefinesToTheLeastCommonMultiple(t *testing.T) {
	s := Ring(6).Then(Halving(4).On(6, []int{0, 1, 2, 3})) // 6 chunks and 4
	if s.Chunks != 12 {
		t.Fatalf("%d chunks", s.Chunks)
	}
	if m := s.Rounds[0][0]; m.N != 2 || m.Src != 10 {
		t.Errorf("the ring's first move is %v", m)
	}
	if m := s.Rounds[5][0]; m.N != 6 {
		t.Errorf("the halving's first move is %v", m)
	}
	if s.Name != "ring then halving" {
		t.Errorf("named %q", s.Name)
	}
}

// Two halves of a world reduce at once, each to its own head.
func TestWith(t *testing.T) {
	s := Binomial(2).On(5, []int{3, 4}).With(Binomial(3).On(5, []int{2, 0, 1}))
	want := "binomial with binomial: 5 ranks, 1 chunks\n  0   4→3 [0]+  1→2 [0]+\n  1   0→2 [0]+\n"
	if s.String() != want {
		t.Errorf("got  %swant %s", s, want)
	}
	spread := Binomial(2).Reverse()
	clash := spread.On(3, []int{1, 0}).With(spread.On(3, []int{2, 0}))
	if err := Check(clash, BroadcastContract(1)); err == nil || !strings.Contains(err.Error(), "lands on chunk 0 of rank 0") {
		t.Errorf("two landings side by side: %v", err)
	}
}

func TestRefine(t *testing.T) {
	got := Pairwise(2).Refine(3).String()
	want := "pairwise: 2 ranks, 6 chunks\n  0   0→1 [3:6]→[0:3]  1→0 [0:3]→[3:6]\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// An all-reduce of a group inside a world leaves the rest of the world alone.
func TestOnSomeRanks(t *testing.T) {
	s := AllReduce(Ring(3)).On(9, []int{7, 2, 4})
	for _, r := range []int{0, 1, 3, 5, 6, 8} {
		for i, round := range s.Local(r) {
			if len(round) != 0 {
				t.Errorf("rank %d has %v in round %d", r, round, i)
			}
		}
	}
	if got := s.Rounds[0][0]; got != (Move{From: 7, To: 2, Src: 2, Dst: 2, N: 1, Reduce: true}) {
		t.Errorf("the first move is %v", got)
	}
}

func TestHierarchical(t *testing.T) {
	ring := func(n int) Schedule { return AllReduce(Ring(n)) }
	halving := func(n int) Schedule { return AllReduce(Halving(n)) }
	for _, groups := range [][][]int{
		{{0}},
		{{0}, {1}},
		{{2, 0, 1}},
		{{0, 1, 2, 3, 4}, {5, 6, 7}, {8, 9, 10, 11}},
		{{0, 3, 6}, {1, 4, 7}, {2, 5}, {8}, {9, 10}},
	} {
		for _, heads := range []func(int) Schedule{ring, halving, Doubling} {
			s := Hierarchical(groups, heads)
			if err := Check(s, AllReduceContract); err != nil {
				t.Errorf("%v: %v", groups, err)
			}
		}
	}
	if name := Hierarchical([][]int{{0, 1}, {2}}, Doubling).Name; name != "hierarchical(doubling)" {
		t.Errorf("named %q", name)
	}
}

// What MaxRanks points to above itself is possible there.
func TestAboveMaxRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("proves schedules of 1,536 ranks")
	}
	var groups [][]int
	for g := range 48 {
		groups = append(groups, nil)
		for r := range 32 {
			groups[g] = append(groups[g], g*32+r)
		}
	}
	for _, s := range []Schedule{
		Hierarchical(groups, func(n int) Schedule { return AllReduce(Ring(n)) }),
		AllReduce(Binomial(1536)),
		Doubling(1536),
	} {
		if err := Check(s, AllReduceContract); err != nil {
			t.Error(err)
		}
	}
}

func TestCombinatorsShareButDoNotChange(t *testing.T) {
	s, other := Ring(4), Binomial(4)
	want := s.String()
	AllReduce(s)
	s.With(other)
	s.Then(other).Then(other)
	s.On(6, []int{5, 4, 3, 2})
	s.Refine(2)
	s.Reverse()
	if got := s.String(); got != want {
		t.Errorf("s is now %v", got)
	}
}

func TestMisuseOfCombinatorsPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Then across worlds":  func() { Ring(3).Then(Ring(4)) },
		"With across worlds":  func() { Ring(3).With(Ring(4)) },
		"Then with nothing":   func() { Schedule{Ranks: 3}.Then(Ring(3)) },
		"On too few":          func() { Ring(3).On(5, []int{0, 1}) },
		"On one twice":        func() { Ring(3).On(5, []int{0, 1, 0}) },
		"On a stranger":       func() { Ring(3).On(5, []int{0, 1, 5}) },
		"Refine by nothing":   func() { Ring(3).Refine(0) },
		"Hierarchical gap":    func() { Hierarchical([][]int{{0}, {2}}, Doubling) },
		"Hierarchical nobody": func() { Hierarchical([][]int{{0}, {}}, Doubling) },
	} {
		if got, ok := panics(f).(string); !ok || !strings.HasPrefix(got, "schedule: ") {
			t.Errorf("%s: panics with %v", name, got)
		}
	}
}

// Local is the schedule seen from one end: all ranks' parts together hold
// every move twice, once for its sender and once for its receiver.
func TestLocal(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, p := range promises(n) {
			sender, receiver := clone(p.s), clone(p.s)
			for i := range p.s.Rounds {
				sender.Rounds[i], receiver.Rounds[i] = nil, nil
			}
			for r := range n {
				local := p.s.Local(r)
				if len(local) != len(p.s.Rounds) {
					t.Fatalf("%s: rank %d has %d rounds", p.s.Name, r, len(local))
				}
				for i, round := range local {
					for _, m := range round {
						switch r {
						case m.From:
							sender.Rounds[i] = append(sender.Rounds[i], m)
						case m.To:
							receiver.Rounds[i] = append(receiver.Rounds[i], m)
						default:
							t.Errorf("%s: rank %d has %v", p.s.Name, r, m)
						}
					}
				}
			}
			if !same(sender, p.s) || !same(receiver, p.s) {
				t.Errorf("%s of %d: parts are not the whole", p.s.Name, n)
			}
		}
	}
	local := Binomial(4).Local(2)
	local[0] = append(local[0], Move{})
	if len(local[1]) != 0 || len(Binomial(4).Local(2)[0]) != 1 {
		t.Error("rounds overlap")
	}
}
