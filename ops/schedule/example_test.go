package schedule_test

import (
	"fmt"
	"strings"
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
	// 268435456 bytes: doubling 1m26.059s, ring 40.251s
}

// Van de Geijn's broadcast of a large vector: deal it out, then let everyone
// pass on what they have. Rank 1 is the root.
func ExampleBroadcast() {
	s := schedule.Broadcast(schedule.Ring(3), 1)
	fmt.Print(s)
	fmt.Println(schedule.Check(s, schedule.BroadcastContract(1)))
	// Output:
	// broadcast(ring): 3 ranks, 3 chunks
	//   0   1→0 [0]
	//   1   1→2 [2]
	//   2   1→0 [1]  2→1 [2]  0→2 [0]
	//   3   1→0 [2]  2→1 [0]  0→2 [1]
	// <nil>
}

// A combination that has no name: the even ranks and the odd add up first.
func ExampleSchedule_Then() {
	halves := schedule.Binomial(2).On(4, []int{0, 2}).With(schedule.Binomial(2).On(4, []int{1, 3}))
	s := halves.Then(schedule.Binomial(2).On(4, []int{0, 1}))
	s.Name = "even and odd"
	fmt.Print(s)
	fmt.Println(schedule.Check(s, schedule.ReduceContract(0)))
	// Output:
	// even and odd: 4 ranks, 1 chunks
	//   0   2→0 [0]+  3→1 [0]+
	//   1   1→0 [0]+
	// <nil>
}

// Two schedules that share nothing but their sums, and one that has others.
func ExampleContract_Canonical() {
	fmt.Println(schedule.CanonicalOrder(5))
	canonical := schedule.AllReduceContract.Canonical()
	fmt.Println(schedule.Check(schedule.OneShot(5), canonical))
	fmt.Println(schedule.Check(schedule.AllReduce(schedule.Cascade(5)), canonical))
	fmt.Println(schedule.Check(schedule.AllReduce(schedule.Ring(3)), canonical))
	// Output:
	// ((0+4)+2)+(1+3)
	// <nil>
	// <nil>
	// schedule: all-reduce(ring) is no canonical all-reduce: chunk 0 of rank 0, last written in round 1 by 2→0 [0]+, is added up as 0+(1+2), not as (0+2)+1
}

// The canonical order gives the same float whatever the ranks sent to whom.
func ExampleFold() {
	gradients := []float32{1e8, 1, -1e8, 1}
	add := func(a, b float32) float32 { return a + b }
	fmt.Println(schedule.Fold(gradients, add), schedule.CanonicalOrder(4))
	// Output:
	// 2 (0+2)+(1+3)
}

// Two sites: only their heads, ranks 0 and 3, talk across.
func ExampleHierarchical() {
	fmt.Print(schedule.Hierarchical([][]int{{0, 1, 2}, {3, 4}}, schedule.Doubling))
	// Output:
	// hierarchical(doubling): 5 ranks, 1 chunks
	//   0   2→0 [0]+  4→3 [0]+
	//   1   1→0 [0]+
	//   2   0→3 [0]+  3→0 [0]+
	//   3   0→1 [0]
	//   4   0→2 [0]  3→4 [0]
}

// Hosts of two ranks and of one. Each half of the vector is reduced on the first host,
// then with the second, whose only rank has both, and goes back.
func ExampleHosts() {
	h := schedule.Hosts{{0, 1}, {2}}
	s := h.AllReduce(h.Balanced(), schedule.Direct, schedule.Doubling)
	fmt.Print(s)
	fmt.Println(schedule.Check(s, schedule.AllReduceContract))
	// Output:
	// two-level(direct, 2 parts): 3 ranks, 2 chunks
	//   0   0→1 [1]+  1→0 [0]+
	//   1   0→2 [0]+  1→2 [1]+  2→0 [0]+  2→1 [1]+
	//   2   1→0 [1]  0→1 [0]
	// <nil>
}

// The picture of it, for a browser.
func ExampleWriteSVG() {
	var b strings.Builder
	if err := schedule.WriteSVG(&b, schedule.Ring(3)); err != nil {
		fmt.Println(err)
	}
	first, _, _ := strings.Cut(b.String(), "\n")
	fmt.Println(first)
	// Output:
	// <svg xmlns="http://www.w3.org/2000/svg" width="360" height="168" viewBox="0 0 360 168" role="img">
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
