package node

import (
	"strings"
	"testing"
)

const someID = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"

func TestParseAddr(t *testing.T) {
	for _, s := range []string{
		"/ip4/192.0.2.7/tcp/4001/p2p/" + someID,
		"/ip6/2001:db8::1/udp/4001/quic-v1/p2p/" + someID,
		"/dns4/example.org/tcp/4001/p2p/" + someID,
	} {
		a, err := ParseAddr(s)
		if err != nil || a.ID.String() != someID || len(a.Addrs) != 1 || a.Addrs[0].String()+"/p2p/"+someID != s {
			t.Errorf("%s: %v, %v", s, a, err)
		}
	}
	for s, want := range map[string]string{
		"":                           "not a multiaddr",
		"192.0.2.7:4001":             "not a multiaddr",
		"/ip4/192.0.2.7/tcp/x":       "not a multiaddr",
		"/ip4/192.0.2.7/tcp/1/p2p/x": "not a multiaddr",
		"/ip4/192.0.2.7/tcp/4001":    "prints, with its whole multiaddr, when it starts",
		"/p2p/" + someID:             "not where",
	} {
		_, err := ParseAddr(s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	f.Add("/ip4/192.0.2.7/tcp/4001/p2p/" + someID)
	f.Add("/ip4/192.0.2.7")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err == nil && (a.ID.Validate() != nil || len(a.Addrs) != 1 || len(a.Addrs[0]) == 0) {
			t.Errorf("%q: %v", s, a)
		}
	})
}
