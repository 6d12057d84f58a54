//go:build !race

// Under the race detector dozens of nodes in one process take half a minute.

package mesh_test

import (
	"testing"
	"testing/synctest"
	"time"

	"peermesh/testnet"
)

// Many peers form a world in a moment, and with few connections: each has one to the
// hubs, to its neighbours, and to whom it took for a hub when it knew only a few. If
// all met all, it would be to each of the others.
func TestCrowdMeetsFew(t *testing.T) {
	const n = 32
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		net := testnet.New(t, testnet.Config{Nodes: n, Network: testnet.Memory})
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("formed in %s", took)
		}
		conns := 0
		for i := range n {
			conns += len(net.Node(i).Host().Network().Peers())
		}
		t.Logf("%d of %d pairs are connected", conns/2, n*(n-1)/2)
		if each := conns / n; each > 2*n/3 {
			t.Errorf("a peer is connected to %d others", each)
		}
	})
}
