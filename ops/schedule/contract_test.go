package schedule

import (
	"fmt"
	"strings"
	"testing"
)

func TestContractNames(t *testing.T) {
	for c, want := range map[Contract]string{
		AllReduceContract:     "all-reduce",
		ReduceScatterContract: "reduce-scatter",
		ReductionContract:     "reduction",
		AllGatherContract:     "all-gather",
		AllToAllContract:      "all-to-all",
		BarrierContract:       "barrier",
		BroadcastContract(1):  "broadcast from rank 1",
		ReduceContract(2):     "reduce to rank 2",
		GatherContract(3):     "gather to rank 3",
		ScatterContract(4):    "scatter from rank 4",

		AllReduceContract.Canonical():    "canonical all-reduce",
		ReductionContract.Canonical():    "canonical reduction",
		ReduceContract(2).Canonical():    "canonical reduce to rank 2",
		AllGatherContract.Canonical():    "all-gather",
		BroadcastContract(1).Canonical(): "broadcast from rank 1",
	} {
		if c.String() != want {
			t.Errorf("got %v, want %s", c, want)
		}
	}
	if BroadcastContract(1) == BroadcastContract(2) || BroadcastContract(0) == ReduceContract(0) {
		t.Error("different contracts are equal")
	}
}

// The root of a gather is where it says it is, and nowhere else.
func TestGatherAtAnotherRoot(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for root := range n {
			other := (root + 1) % n
			for _, s := range []Schedule{DirectGather(n), BinomialGather(n)} {
				s = s.Rotate(root)
				if Check(s, GatherContract(other)) == nil || Check(s.Reverse(), ScatterContract(other)) == nil {
					t.Errorf("%s of %d: gathers to %d as well as to %d", s.Name, n, other, root)
				}
			}
		}
	}
}

// An order of ranks moves who holds a chunk, not which chunk it is. The sums
// are right, but a reduce-scatter has them elsewhere.
func TestRotationKeepsChunks(t *testing.T) {
	s := Ring(5).On(5, rotated(5, 2))
	if err := Check(s, ReductionContract); err != nil {
		t.Error(err)
	}
	if err := Check(s, ReduceScatterContract); err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("got %v", err)
	}
}

// What is asked of each chunk of each of two ranks, with two chunks a block.
func TestDemands(t *testing.T) {
	show := func(d demand) string {
		switch d.what {
		case total:
			return "Σ"
		case union:
			return "∪"
		case original:
			return fmt.Sprintf("%d.%d", d.rank, d.chunk)
		}
		return "-"
	}
	for c, want := range map[Contract]string{
		AllReduceContract:     "Σ Σ Σ Σ | Σ Σ Σ Σ",
		ReduceScatterContract: "Σ Σ - - | - - Σ Σ",
		AllGatherContract:     "0.0 0.1 1.2 1.3 | 0.0 0.1 1.2 1.3",
		AllToAllContract:      "0.0 0.1 1.0 1.1 | 0.2 0.3 1.2 1.3",
		BarrierContract:       "∪ ∪ ∪ ∪ | ∪ ∪ ∪ ∪",
		BroadcastContract(1):  "1.0 1.1 1.2 1.3 | 1.0 1.1 1.2 1.3",
		ReduceContract(1):     "- - - - | Σ Σ Σ Σ",
		GatherContract(0):     "0.0 0.1 1.2 1.3 | - - - -",
		ScatterContract(0):    "0.0 0.1 - - | - - 0.2 0.3",
	} {
		var ranks []string
		for r := range 2 {
			var chunks []string
			for k := range 4 {
				chunks = append(chunks, show(c.demand(r, k, 2, 4)))
			}
			ranks = append(ranks, strings.Join(chunks, " "))
		}
		if got := strings.Join(ranks, " | "); got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}
