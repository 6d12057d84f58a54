package mesh

import (
	"testing"

	"github.com/multiformats/go-multiaddr"
)

// A host is known by where its peers have their sockets, and by nothing else.
func TestHostOf(t *testing.T) {
	for want, texts := range map[string][]string{
		"":          {"/ip4/127.0.0.1/tcp/1"},
		"0123abcd":  {"/ip4/10.0.0.1/tcp/1", "/unix/run/user/7/peermesh/0123abcd/peer1"},
		"0123abcde": {"/unix/tmp/peermesh-7/0123abcde/peer2"},
	} {
		var addrs []multiaddr.Multiaddr
		for _, a := range texts {
			addrs = append(addrs, multiaddr.StringCast(a))
		}
		if got := hostOf(addrs); got != want {
			t.Errorf("%v: %q, want %q", texts, got, want)
		}
	}
	if got := hostOf(nil); got != "" {
		t.Errorf("no addresses: %q", got)
	}
}
