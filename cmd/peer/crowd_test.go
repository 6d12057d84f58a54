package main

import "testing"

func TestCrowded(t *testing.T) {
	for _, c := range []struct {
		local, world, threads, processors int
		want                              bool
	}{
		{2, 2, 1, 2, true},
		{8, 8, 1, 2, true},
		{2, 2, 8, 16, true},
		{2, 2, 1, 4, false}, // processors to spare
		{1, 1, 2, 2, false}, // nobody else
		{2, 4, 1, 2, false}, // others come by the network, which is slow and waits for nobody
		{16, 16, 1, 17, false},
	} {
		if got := crowded(c.local, c.world, c.threads, c.processors); got != c.want {
			t.Errorf("%d of %d ranks of %d threads on %d processors: %v", c.local, c.world, c.threads, c.processors, got)
		}
	}
}
