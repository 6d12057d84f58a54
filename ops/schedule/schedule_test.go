package schedule

import (
	"reflect"
	"testing"
)

// One word for each way of doing one thing, so that it can be asked for.
func TestAlgorithm(t *testing.T) {
	const n = 4
	heads := func(n int) Schedule { return AllReduce(Ring(n)) }
	for collective, all := range map[string]map[string]Schedule{
		"all-reduce": {
			"one-shot": OneShot(n), "doubling": Doubling(n), "binomial": AllReduce(Binomial(n)), "direct": AllReduce(Direct(n)),
			"bruck": AllReduce(Bruck(n)), "cascade": AllReduce(Cascade(n)), "halving": AllReduce(Halving(n)),
			"ring": AllReduce(Ring(n)), "tree": AllReduce(Tree(n, 2)), "hierarchical": Hierarchical([][]int{{0, 1}, {2, 3}}, heads),
		},
		"reduce-scatter": {"direct": Direct(n), "bruck": Bruck(n), "cascade": Cascade(n), "halving": Halving(n), "ring": Ring(n)},
		"all-gather":     {"direct": Direct(n).Reverse(), "bruck": Bruck(n).Reverse(), "ring": Ring(n).Reverse()},
		"reduce": {
			"binomial": BinomialTo(n, 1), "bruck": Reduce(Bruck(n), 1), "ring": Reduce(Ring(n), 1), "tree": Tree(n, 2).Rotate(1),
			"cascade": Reduce(Cascade(n), 2),
		},
		"broadcast": {
			"binomial": BinomialTo(n, 1).Reverse(), "bruck": Broadcast(Bruck(n), 1), "ring": Broadcast(Ring(n), 1),
			"tree": Tree(n, 2).Reverse().Rotate(3),
		},
		"gather":     {"binomial": BinomialGather(n), "direct": DirectGather(n).Rotate(1)},
		"all-to-all": {"direct": DirectAllToAll(n), "bruck": BruckAllToAll(n), "pairwise": Pairwise(n)},
		"barrier":    {"dissemination": Dissemination(n), "one-shot": OneShot(n)},
		"made up": {
			"ring": Ring(n).Then(BinomialGather(n)), "x": {Name: "x"}, "": {}, "binomial": Binomial(n).Reverse().Then(Ring(n)),
			"a": {Name: "reverse(all-reduce(a(b)))"},
		},
	} {
		for want, s := range all {
			if got := s.Algorithm(); got != want {
				t.Errorf("%s: %q is %q, want %q", collective, s.Name, got, want)
			}
		}
	}
}

// Only what deals chunks to others than their owners moves them about.
func TestAligned(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, p := range promises(n) {
			want := p.c != AllToAllContract || n == 1
			if p.s.Aligned() != want {
				t.Errorf("%s of %d: aligned %v", p.s.Name, n, !want)
			}
		}
	}
}

func TestRotate(t *testing.T) {
	s := BinomialGather(6).Refine(2)
	want := "binomial: 6 ranks, 12 chunks\n" +
		"  0   5→4 [10:12]  1→0 [2:4]  3→2 [6:8]\n" +
		"  1   0→4 [0:4]\n" +
		"  2   2→4 [4:8]\n"
	for _, k := range []int{4, -2, 10} {
		if got := s.Rotate(k).String(); got != want {
			t.Errorf("by %d: %swant %s", k, got, want)
		}
	}
	if got := Pairwise(6).Rotate(2).Rotate(4); !reflect.DeepEqual(got, Pairwise(6)) {
		t.Errorf("all the way round: %v", got)
	}
	// A chunk that is nobody's own stays; a span over the end is cut.
	if got := Binomial(3).Rotate(1).String(); got != "binomial: 3 ranks, 1 chunks\n  0   0→1 [0]+\n  1   2→1 [0]+\n" {
		t.Errorf("got %s", got)
	}
	span := Schedule{Name: "x", Ranks: 3, Chunks: 3, Rounds: []Round{{{From: 0, To: 1, Src: 0, Dst: 1, N: 2}}}}
	if got := span.Rotate(2).String(); got != "x: 3 ranks, 3 chunks\n  0   2→0 [2]→[0]  2→0 [0]→[1]\n" {
		t.Errorf("got %s", got)
	}
}
