package node

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// bare is a node's first address without its ID.
func bare(n *Node) multiaddr.Multiaddr {
	a, _ := peer.SplitAddr(n.Addrs()[0])
	return a
}

func TestLearn(t *testing.T) {
	secret := []byte("a secret of at least sixteen bytes")
	for _, on := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1", "/ip6/::1/tcp/0"} {
		for _, c := range []Config{{}, {Secret: secret}} {
			c.Listen = []string{on}
			there := start(t, c)
			c.Listen = nil
			here := start(t, c)
			id, err := here.Learn(t.Context(), bare(there))
			if err != nil || id != there.ID() || !here.Connected(id) {
				t.Errorf("%s: %s, %v", on, id, err)
			}
			if id, err := there.Learn(t.Context(), bare(there)); !errors.Is(err, ErrSelf) || id != there.ID() {
				t.Errorf("%s: asked itself: %s, %v", on, id, err)
			}
		}
	}
}

// TestLearnAllowed has a list of those who may be dialled: one of them is found, and
// whoever else answers is not connected to.
func TestLearnAllowed(t *testing.T) {
	listen := Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	one, two, stranger := start(t, listen), start(t, listen), start(t, listen)
	here := start(t, Config{Listen: listen.Listen, Allow: []peer.ID{one.ID(), two.ID()}})
	for _, n := range []*Node{one, two} {
		if id, err := here.Learn(t.Context(), bare(n)); err != nil || id != n.ID() {
			t.Errorf("%s, %v", id, err)
		}
	}
	if _, err := here.Learn(t.Context(), bare(stranger)); err == nil || here.Connected(stranger.ID()) {
		t.Error("a stranger was let in")
	}
	if id, err := here.Learn(t.Context(), bare(one)); err == nil {
		t.Errorf("%s is asked for, with everybody known", id)
	}
}

// TestLearnNobody asks where nobody listens, and where somebody does who says nothing.
func TestLearnNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, err := manet.FromNetAddr(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	here := start(t, Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if id, err := here.Learn(ctx, at); err == nil {
		t.Errorf("%s is silent", id)
	}
	l.Close()
	var dial *DialError
	if id, err := here.Learn(t.Context(), at); !errors.As(err, &dial) || dial.Reason() != "connection refused" {
		t.Errorf("%s, %v", id, err)
	}
}
