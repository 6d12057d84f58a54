package main

import "os"

// A schedule is a value: before anything is sent one can look at it.
func Example() {
	run([]string{"schedule", "reduce-scatter", "--ranks", "3", "--bytes", "30MB", "--rate", "1GB", "--latency", "1ms"}, os.Stdout, os.Stderr)
	// Output:
	// reduce-scatter of 30000000 bytes, links of 1ms and 1000000000 bytes/s:
	//   ring  2 rounds  22ms
	//
	// ring: 3 ranks, 3 chunks
	//   0   0→1 [2]+  1→2 [0]+  2→0 [1]+
	//   1   0→1 [1]+  1→2 [2]+  2→0 [0]+
}
