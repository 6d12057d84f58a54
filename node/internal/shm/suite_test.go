//go:build linux && (amd64 || arm64)

package shm

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	ttransport "github.com/libp2p/go-libp2p/p2p/transport/testsuite"
)

// transports makes two hosts' transports.
func transports(t testing.TB) (a, b *Transport) {
	t.Helper()
	made := make([]*Transport, 2)
	for i := range made {
		key, _, err := crypto.GenerateEd25519Key(nil)
		if err != nil {
			t.Fatal(err)
		}
		if made[i], err = New(key, &network.NullResourceManager{}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return made[0], made[1]
}

// libp2p's own idea of a transport.
func TestSuite(t *testing.T) {
	a, b := transports(t)
	ttransport.SubtestTransport(t, a, b, a.place.address(anyName).String(), a.id)
}
