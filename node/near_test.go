package node

import (
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"peermesh/node/internal/shm"
)

// Peers of one machine meet in shared memory unasked, and their addresses of it
// come last, because they are for this machine only.
func TestNear(t *testing.T) {
	if err := shm.Available(); err != nil {
		t.Skip(err)
	}
	a, b := start(t, Config{}), start(t, Config{})
	addrs := b.Addrs()
	if n := slices.IndexFunc(addrs, isLocal); n != len(addrs)-1 || n == 0 {
		t.Fatalf("%v", addrs)
	}
	p, err := ParseAddr(addrs[len(addrs)-1].String()) // text keeps the ID
	if err != nil || p.ID != b.ID() {
		t.Fatalf("%v, %v", p, err)
	}
	if err := a.Connect(t.Context(), peer.AddrInfo{ID: b.ID(), Addrs: b.Host().Addrs()}); err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Host().Network().ConnsToPeer(b.ID()) {
		if c.ConnState().Transport != Shm {
			t.Errorf("connected by %s", c.RemoteMultiaddr())
		}
	}
}

func TestNearFirst(t *testing.T) {
	tcp, unix := multiaddr.StringCast("/ip4/10.0.0.1/tcp/1"), multiaddr.StringCast("/unix/x/y")
	got := nearFirst(tcpFirst)([]multiaddr.Multiaddr{tcp, unix})
	if len(got) != 2 || !got[0].Addr.Equal(unix) || got[0].Delay != 0 || got[1].Delay < nearHeadStart {
		t.Errorf("%v", got)
	}
	if got = nearFirst(tcpFirst)([]multiaddr.Multiaddr{tcp}); len(got) != 1 || got[0].Delay != 0 {
		t.Errorf("TCP alone waits: %v", got)
	}
}
