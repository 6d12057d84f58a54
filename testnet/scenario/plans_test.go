package scenario_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"peermesh/testnet/scenario"
)

const (
	// plansWorld is what random faults befall: it may live with one rank less, and no
	// more than one is in trouble at a time.
	plansWorld = "nodes 4\nlink * * latency=2ms jitter=1ms\nmin 3\nrounds 50\nbytes 4kB\npause 500ms"
	// plansEnd is when the last fault is over: before the last rounds, because ranks
	// that have finished them all do not come back for those that have not.
	plansEnd = 20 * time.Second
)

// A world lives through any random plan: all rounds are finished in the end. The seed
// of a plan that it does not live through is told, with the least of it that does
// harm. PEERMESH_PLANS says how many there are, for `make plans`.
func TestPlans(t *testing.T) {
	n := 2
	if s := os.Getenv("PEERMESH_PLANS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Parse(plansWorld)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(n) {
		s.Seed = seed
		fails := func(plan []scenario.Fault) bool {
			s.Faults = plan
			r, err := scenario.Run(t.Context(), s)
			return err != nil || r.Finished() != s.Rounds
		}
		plan := scenario.Random(seed, s.Nodes, 8, plansEnd)
		if fails(plan) {
			least := scenario.Shrink(plan, fails)
			s.Faults = least
			r, err := scenario.Run(t.Context(), s)
			t.Fatalf("seed %d: %v\n%v\nof\n%v", seed, err, r, s)
		}
	}
}
