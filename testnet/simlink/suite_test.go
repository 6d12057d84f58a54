package simlink_test

import (
	"runtime/debug"
	"testing"
	"testing/synctest"

	"github.com/libp2p/go-libp2p/core/network"
	ttransport "github.com/libp2p/go-libp2p/p2p/transport/testsuite"
	"go.uber.org/goleak"

	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	simlink.RememberSignatures()
	debug.SetGCPercent(400) // a world is a few megabytes, and soon gone
	goleak.VerifyTestMain(m)
}

// The transport passes libp2p's own suite, but for the part that wants several
// listeners at one address.
func TestSuite(t *testing.T) {
	for name, part := range map[string]ttransport.TransportSubTestFn{
		"Protocols": ttransport.SubtestProtocols, "Basic": ttransport.SubtestBasic, "Cancel": ttransport.SubtestCancel,
		"PingPong": ttransport.SubtestPingPong,
		"Reset":    ttransport.SubtestStreamReset, "Streams": ttransport.SubtestStress1Conn100Stream100Msg,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { suite(t, part) })
		})
	}
}

func suite(t *testing.T, part ttransport.TransportSubTestFn) {
	net := simlink.New(simlink.Config{Hosts: 2})
	var ends [2]*simlink.Transport
	for i := range ends {
		var err error
		if ends[i], err = net.Host(i).Transport(&network.NullResourceManager{}); err != nil {
			t.Fatal(err)
		}
	}
	part(t, ends[0], ends[1], net.Host(0).Multiaddr(), net.Host(0).ID())
	if err := net.Close(); err != nil {
		t.Error(err)
	}
}
