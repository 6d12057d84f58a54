package schedule_test

import (
	"fmt"

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
