package simlink_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/testnet/simlink"
)

// runs is how often a run is tried again: a few times, or 50 for `make again`.
func runs() int {
	if os.Getenv("PEERMESH_AGAIN") != "" {
		return 50
	}
	return 3
}

// The same seed gives the same run: every packet, when it landed, where, and how
// long it was, of a world that forms, computes and parts. (In one of more than seven
// the gossip draws by chance whom it tells.)
func TestSameAgain(t *testing.T) {
	if simlink.Raced {
		t.Skip("the race detector shuffles goroutines")
	}
	c := simlink.Config{
		Seed: 5, Link: simlink.Link{Latency: 3 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.01},
		Port: simlink.Port{Up: 1e6, Down: 10e6},
	}
	var first []string
	for i := range runs() {
		var trace []string
		c.Trace = func(e simlink.Event) { trace = append(trace, e.String()) }
		simlink.Exact(func() {
			synctest.Test(t, func(t *testing.T) { world(t, 6, c) })
		})
		if i == 0 {
			first = trace
		}
		for j, line := range first {
			if j >= len(trace) || trace[j] != line {
				t.Fatalf("run %d: line %d of %d was %s, is %s", i, j+1, len(first), line, trace[min(j, len(trace)-1)])
			}
		}
	}
	if len(first) < 300 {
		t.Errorf("a trace of %d packets", len(first))
	}
}
