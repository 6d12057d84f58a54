package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

func TestDialErrors(t *testing.T) {
	n, other := start(t, Config{}), start(t, Config{Identity: t.TempDir() + "/key"})
	gone := info(t, other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	third := start(t, Config{})
	for want, a := range map[string]peer.AddrInfo{
		"connection refused":        gone,
		"peer id mismatch":          {ID: mustID(t, someID), Addrs: info(t, third).Addrs},
		"no address that this node": {ID: mustID(t, "12D3KooWCRscMgHgEo3ojm8ovzheydpvTEqsDtq7Vby38cMHrYjt")},
	} {
		for range 2 { // a second attempt is not held back
			err := n.Connect(t.Context(), a)
			var dial *DialError
			if !errors.As(err, &dial) || !strings.Contains(dial.Reason(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	_, err := n.Open(t.Context(), gone.ID, "/x")
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("open: %v", err)
	}
	if err := n.Connect(t.Context(), info(t, third)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(t.Context(), third.ID(), "/x"); err == nil || !strings.Contains(err.Error(), "does not speak /x") {
		t.Errorf("open of an unknown protocol: %v", err)
	}
	if !n.Connected(third.ID()) || n.Connected(gone.ID) {
		t.Error("who is connected?")
	}
}

func mustID(t *testing.T, s string) peer.ID {
	t.Helper()
	id, err := peer.Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A peer that was not there yet is reached as soon as it is.
func TestConnectDoesNotBackOff(t *testing.T) {
	path := t.TempDir() + "/key"
	first := start(t, Config{Identity: path})
	where := info(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	n := start(t, Config{})
	for range 3 {
		if err := n.Connect(t.Context(), where); err == nil {
			t.Fatal("connected to nobody")
		}
	}
	start(t, Config{Identity: path, Listen: []string{where.Addrs[0].String()}})
	if err := n.Connect(t.Context(), where); err != nil {
		t.Error(err)
	}
}

func TestTCPFirst(t *testing.T) {
	tcp, quic := multiaddr.StringCast("/ip4/10.0.0.1/tcp/1"), multiaddr.StringCast("/ip4/10.0.0.1/udp/1/quic-v1")
	got := tcpFirst([]multiaddr.Multiaddr{quic, tcp})
	if len(got) != 2 || !got[0].Addr.Equal(tcp) || got[0].Delay != 0 || got[1].Delay < tcpHeadStart {
		t.Errorf("%v", got)
	}
	if got = tcpFirst([]multiaddr.Multiaddr{quic}); len(got) != 1 || got[0].Delay != 0 {
		t.Errorf("QUIC alone waits for TCP: %v", got)
	}
}

func TestProtected(t *testing.T) {
	n := start(t, Config{})
	id := mustID(t, someID)
	n.Protect(id, "x")
	if !n.Host().ConnManager().IsProtected(id, "x") {
		t.Error("not protected")
	}
	n.Unprotect(id, "x")
	if n.Host().ConnManager().IsProtected(id, "") {
		t.Error("still protected")
	}
}
