package conform_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/testnet"
	"peermesh/testnet/conform"
	"peermesh/testnet/memnet"
	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	simlink.RememberSignatures()
	goleak.VerifyTestMain(m)
}

func TestMemnet(t *testing.T) {
	worlds := func(t *testing.T, n int) (ends []ops.Transport) {
		for _, w := range memnet.New(n) {
			ends = append(ends, w)
		}
		return ends
	}
	conform.Transport(t, worlds)
	conform.Collectives(t, worlds)
}

// Meshes pass the same suites on every network. Those over sockets and whole QUIC
// take a minute: `make networks` runs them.
func TestMesh(t *testing.T) {
	for _, network := range testnet.Networks() {
		t.Run(string(network), func(t *testing.T) {
			if network != testnet.Memory && network != testnet.Model && os.Getenv("PEERMESH_NETWORKS") == "" {
				t.Skip("takes long: set PEERMESH_NETWORKS=1, or make networks")
			}
			worlds := func(t *testing.T, n int) (ends []ops.Transport) {
				net := testnet.New(t, testnet.Config{
					Nodes: n, Network: network, Seed: 1,
					Link: simlink.Link{Latency: time.Millisecond, Jitter: time.Millisecond, Loss: 0.001},
					Port: simlink.Port{Up: 100e6, Down: 100e6},
				})
				for r := range n {
					ends = append(ends, net.World(r))
				}
				return ends
			}
			if network.Virtual() {
				conform.VirtualTransport(t, worlds)
				conform.VirtualCollectives(t, worlds)
				return
			}
			conform.Transport(t, worlds)
			conform.Collectives(t, worlds)
		})
	}
}
