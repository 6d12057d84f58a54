package tcp

import (
	"crypto/rand"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	ttransport "github.com/libp2p/go-libp2p/p2p/transport/testsuite"

	"peermesh/node/internal/mux"
)

// newKey is an identity for one test.
func newKey(t testing.TB) (crypto.PrivKey, peer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

// pair are two transports with the given layers.
func pair(t testing.TB, security string, with func() []upgrader.StreamMuxer) (a, b *Transport, idA, idB peer.ID) {
	t.Helper()
	make1 := func() (*Transport, peer.ID) {
		key, id := newKey(t)
		tr, err := newTransport(key, nil, nil, nil, with(), security)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		})
		return tr, id
	}
	a, idA = make1()
	b, idB = make1()
	return a, b, idA, idB
}

func onlyMux() []upgrader.StreamMuxer {
	return []upgrader.StreamMuxer{{ID: MuxID, Muxer: mux.New()}}
}

func onlyYamux() []upgrader.StreamMuxer {
	return []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: mux.Batch(Yamux())}}
}

// libp2p's own suite, over each security layer and muxer.
func TestSuite(t *testing.T) {
	for name, with := range map[string]func() []upgrader.StreamMuxer{"mux": onlyMux, "yamux": onlyYamux} {
		for _, security := range []string{libp2ptls.ID, noise.ID} {
			t.Run(name+security, func(t *testing.T) {
				a, b, id, _ := pair(t, security, with)
				ttransport.SubtestTransport(t, a, b, "/ip4/127.0.0.1/tcp/0", id)
			})
		}
	}
}
