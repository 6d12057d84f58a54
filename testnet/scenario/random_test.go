package scenario

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// A random plan is the same for the same seed, in order, and undoes what it does.
func TestRandom(t *testing.T) {
	kinds := make(map[Kind]int)
	for seed := range uint64(200) {
		plan := Random(seed, 5, 12, time.Minute)
		if len(plan) != 12 || !reflect.DeepEqual(plan, Random(seed, 5, 12, time.Minute)) {
			t.Fatalf("seed %d: %v", seed, plan)
		}
		undo := map[Kind]Kind{Kill: Restart, Freeze: Thaw, Cut: Heal}
		for i := 0; i < len(plan); i += 2 {
			a, b := plan[i], plan[i+1]
			kinds[a.Kind]++
			if b.Kind != undo[a.Kind] || !slices.Equal(a.Nodes, b.Nodes) || a.At > b.At || b.At > time.Minute || i > 0 && plan[i-1].At > a.At {
				t.Fatalf("seed %d: %v then %v", seed, a, b)
			}
			if a.Nodes[0] < 1 || a.Nodes[0] > 4 || len(a.Nodes) == 2 && a.Nodes[0] == a.Nodes[1] {
				t.Fatalf("seed %d: %v", seed, a)
			}
		}
	}
	if len(kinds) != 3 {
		t.Errorf("drew %v", kinds)
	}
	if Random(1, 1, 4, time.Second) != nil || Random(1, 2, 1, time.Second) != nil {
		t.Error("a plan of nothing has something")
	}
}

// Shrink finds what matters, wherever it is, and no more.
func TestShrink(t *testing.T) {
	whole := Random(3, 8, 40, time.Hour)
	for _, needed := range [][]int{{}, {0}, {39}, {7, 8}, {0, 20, 39}, {1, 3, 5, 7, 9, 11}} {
		var want []Fault
		for _, i := range needed {
			want = append(want, whole[i])
		}
		asked := 0
		got := Shrink(whole, func(plan []Fault) bool {
			asked++
			for _, f := range want {
				if !slices.ContainsFunc(plan, func(g Fault) bool { return reflect.DeepEqual(f, g) }) {
					return false
				}
			}
			return true
		})
		if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("needed %v, got %v", needed, got)
		}
		if asked > 400 {
			t.Errorf("asked %d times", asked)
		}
	}
	if got := Shrink(whole, func([]Fault) bool { return false }); len(got) != len(whole) {
		t.Errorf("a plan that does not fail shrank to %d", len(got))
	}
}
