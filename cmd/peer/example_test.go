package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// A schedule is printed, and proved; what its price is beside those of others
// stands below that.
func Example() {
	var out bytes.Buffer
	run([]string{"schedule", "reduce-scatter", "--ranks", "3", "--algorithm", "ring"}, &out, os.Stderr)
	head, _, _ := strings.Cut(out.String(), "priced: ")
	fmt.Print(head)
	// Output:
	// ring: 3 ranks, 3 chunks
	//   0   0→1 [2]+  1→2 [0]+  2→0 [1]+
	//   1   0→1 [1]+  1→2 [2]+  2→0 [0]+
	//
	// proved: rank r ends with the sum of block r, each rank's part in it once
}
