package testnet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// Two hosts of two ranks, by their modelled links: once these are measured, a large
// all-reduce goes in two levels on every rank, and takes less time.
func TestTwoHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, elements = 4, 1 << 19
		net := testnet.New(t, testnet.Config{Nodes: n, Network: testnet.Model, Ops: ops.Config{Lanes: 1}})
		for a := range n {
			for b := range a {
				link := simlink.Link{Latency: 20 * time.Millisecond, Rate: 2e6}
				if a/2 == b/2 {
					link = simlink.Link{Latency: 100 * time.Microsecond, Rate: 1e9}
				}
				if err := net.SetLink(a, b, link); err != nil {
					t.Fatal(err)
				}
			}
		}
		clock := func() time.Duration {
			start := time.Now()
			if err := net.Run(func(g *ops.Group) error {
				return g.AllReduce(t.Context(), tensor.Of(make([]float32, elements)), tensor.Sum).Wait()
			}); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		before := clock()
		chosen := make([]string, n)
		if err := net.Run(func(g *ops.Group) error {
			err := g.Measure(t.Context())
			chosen[g.Rank()] = ops.Candidates(ops.KindAllReduce, n, 0, 4*elements, g.Links())[0].Schedule.String()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for r, s := range chosen {
			if s != chosen[0] || len(s) < 9 || s[:9] != "two-level" {
				t.Errorf("rank %d goes by\n%s", r, s)
			}
		}
		after := clock()
		t.Logf("%v before measuring, %v after", before, after)
		if after >= before {
			t.Errorf("%v after measuring, %v before", after, before)
		}
	})
}
