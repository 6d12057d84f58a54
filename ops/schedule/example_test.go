package schedule_test

import (
	"fmt"
	"time"

	"peermesh/ops/schedule"
)

func Example() {
	fmt.Print(schedule.AllReduce(schedule.Ring(3)))
	// Output:
	// all-reduce(ring): 3 ranks, 3 chunks
	//   0   0→1 [2]+  1→2 [0]+  2→0 [1]+
	//   1   0→1 [1]+  1→2 [2]+  2→0 [0]+
	//   2   1→0 [1]  2→1 [2]  0→2 [0]
	//   3   1→0 [2]  2→1 [0]  0→2 [1]
}

// Both schedules add up every contribution exactly once. In one of them the
// replicas would drift apart.
func ExampleCheck() {
	fmt.Println(schedule.Check(schedule.Doubling(4), schedule.AllReduceContract))
	fmt.Println(schedule.Check(schedule.Dissemination(4), schedule.AllReduceContract))
	// Output:
	// <nil>
	// schedule: dissemination is no all-reduce: chunk 0 of rank 1, last written in round 1 by 3→1 [0]+, is added up in another order than on rank 0, so that bits may differ
}

// Twelve peers 40 ms apart on 100 Mbit/s.
func ExamplePrice() {
	links := schedule.Uniform{Delay: 40 * time.Millisecond, BytesPerSecond: 12.5e6}
	doubling, ring := schedule.Doubling(12), schedule.AllReduce(schedule.Ring(12))
	for _, bytes := range []int{1 << 10, 256 << 20} {
		fmt.Printf("%d bytes: doubling %v, ring %v\n", bytes,
			schedule.Price(doubling, bytes, links).Round(time.Millisecond),
			schedule.Price(ring, bytes, links).Round(time.Millisecond))
	}
	// Output:
	// 1024 bytes: doubling 160ms, ring 880ms
	// 268435456 bytes: doubling 1m47.534s, ring 40.251s
}

// Van de Geijn's broadcast of a large vector: deal it out, then let everyone
// pass on what they have. Rank 1 is the root.
func ExampleSchedule_Then() {
	scatter, gather := schedule.BinomialGather(3).Reverse(), schedule.Ring(3).Reverse()
	s := scatter.Then(gather).On(3, []int{1, 2, 0})
	s.Name = "broadcast(scatter, all-gather)"
	fmt.Print(s)
	fmt.Println(schedule.Check(s, schedule.BroadcastContract(1)))
	// Output:
	// broadcast(scatter, all-gather): 3 ranks, 3 chunks
	//   0   1→0 [2]
	//   1   1→2 [1]
	//   2   2→1 [1]  0→2 [2]  1→0 [0]
	//   3   2→1 [2]  0→2 [0]  1→0 [1]
	// <nil>
}

// Two sites: only their heads, ranks 0 and 3, talk across.
func ExampleHierarchical() {
	fmt.Print(schedule.Hierarchical([][]int{{0, 1, 2}, {3, 4}}, schedule.Doubling))
	// Output:
	// hierarchical(doubling): 5 ranks, 1 chunks
	//   0   1→0 [0]+  4→3 [0]+
	//   1   2→0 [0]+
	//   2   0→3 [0]+  3→0 [0]+
	//   3   0→2 [0]
	//   4   0→1 [0]  3→4 [0]
}

// A schedule of one's own, as text: a reduction along a chain.
func ExampleParse() {
	s, err := schedule.Parse(`chain: 3 ranks, 1 chunks
  0   2→1 [0]+
  1   1→0 [0]+
`)
	fmt.Println(err, schedule.Check(s, schedule.ReduceContract(0)))
	for _, round := range s.Local(1) {
		fmt.Println(round)
	}
	// Output:
	// <nil> <nil>
	// [2→1 [0]+]
	// [1→0 [0]+]
}
