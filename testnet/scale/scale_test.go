package scale_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"peermesh/testnet/scale"
	"peermesh/testnet/simlink"
)

// sizes are the worlds to measure: a small one, or those of PEERMESH_SCALE, for
// `make scale`.
func sizes(t *testing.T) (all []int) {
	text := os.Getenv("PEERMESH_SCALE")
	if text == "" {
		return []int{10}
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// Worlds form, agree and compute; what grows is tabled, with the power of the nodes by
// which it has grown since the row before.
func TestScale(t *testing.T) {
	if simlink.Raced && os.Getenv("PEERMESH_SCALE") != "" {
		t.Skip("the race detector takes ten times the memory")
	}
	var before *scale.Row
	for _, n := range sizes(t) {
		r, err := scale.Measure(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d nodes, %v wall, %v to form in virtual time, at most %.1f GiB held", n, r.Wall.Round(time.Second), r.Forming, float64(r.Peak)/(1<<30))
		report(t, before, r)
		if r.Conns > n*(n-1)/2 || r.Streams < r.Conns || r.Goroutines < n {
			t.Errorf("%d connections, %d streams, %d goroutines", r.Conns, r.Streams, r.Goroutines)
		}
		if log := math.Log2(float64(n)); n > 100 && float64(r.Conns) > 3*float64(n)*log {
			t.Errorf("%d connections of %d nodes: more than 3 n log n", r.Conns, n)
		}
		before = &r
	}
}

func report(t *testing.T, before *scale.Row, r scale.Row) {
	for _, c := range []struct {
		name string
		of   func(scale.Row) float64
		unit string
	}{
		{"connections", func(r scale.Row) float64 { return float64(r.Conns) }, ""},
		{"streams", func(r scale.Row) float64 { return float64(r.Streams) }, ""},
		{"goroutines", func(r scale.Row) float64 { return float64(r.Goroutines) }, ""},
		{"membership", func(r scale.Row) float64 { return float64(r.Membership) / 1e6 }, "MB"},
		{"collectives", func(r scale.Row) float64 { return float64(r.Reduce) / 1e6 }, "MB"},
		{"heap", func(r scale.Row) float64 { return float64(r.Heap) / 1e6 }, "MB"},
		{"CPU to form", func(r scale.Row) float64 { return r.FormCPU.Seconds() }, "s"},
		{"CPU in all", func(r scale.Row) float64 { return r.CPU.Seconds() }, "s"},
	} {
		order := ""
		if before != nil && c.of(*before) > 0 {
			order = fmt.Sprintf("n^%.2f", math.Log(c.of(r)/c.of(*before))/math.Log(float64(r.Nodes)/float64(before.Nodes)))
		}
		t.Logf("  %-12s %12.1f %-2s %s", c.name, c.of(r), c.unit, order)
	}
}
