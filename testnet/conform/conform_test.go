package conform_test

import (
	"testing"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/testnet"
	"peermesh/testnet/conform"
	"peermesh/testnet/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemnet(t *testing.T) {
	conform.Transport(t, func(t *testing.T, n int) (ends []ops.Transport) {
		for _, w := range memnet.New(n) {
			ends = append(ends, w)
		}
		return ends
	})
}

func TestMesh(t *testing.T) {
	conform.Transport(t, func(t *testing.T, n int) (ends []ops.Transport) {
		net := testnet.New(t, testnet.Config{Nodes: n})
		for r := range n {
			ends = append(ends, net.World(r))
		}
		return ends
	})
}
