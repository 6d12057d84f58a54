package mesh

import (
	"fmt"
	"slices"
	"testing"

	"github.com/multiformats/go-multiaddr"
)

const (
	relayAddr  = "/ip4/198.51.100.1/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA/p2p-circuit"
	unixAddr   = "/unix/@peermesh/0/1234"
	loopedAddr = "/ip4/127.0.0.1/tcp/1"
)

func TestKindOf(t *testing.T) {
	for text, want := range map[string]int{
		"/ip4/192.0.2.1/tcp/1": direct, "/ip6/2001:db8::1/udp/1/quic-v1": direct, "/dns4/example.org/tcp/1": direct,
		relayAddr: relayed, unixAddr: inMemory, "/memory/1": inMemory, loopedAddr: looped, "/ip6/::1/tcp/1": looped,
	} {
		if got := kindOf(multiaddr.StringCast(text)); got != want {
			t.Errorf("%s is of kind %d, want %d", text, got, want)
		}
	}
}

// A machine with many interfaces still announces its relay, its memory and its
// loopback, wherever they stood, and as many of the rest as there is room for.
func TestOneOfEachKindSurvives(t *testing.T) {
	var many []string
	for i := range 3 * maxAddrs {
		many = append(many, fmt.Sprintf("/ip6/2001:db8::%d/udp/4001/quic-v1", i+1))
	}
	for name, x := range map[string]struct{ addrs, want []string }{
		"none": {nil, nil},
		"few":  {[]string{loopedAddr, many[0]}, []string{many[0], loopedAddr}},
		"last": {append(slices.Clone(many), unixAddr, loopedAddr, relayAddr), append([]string{many[0], relayAddr, unixAddr, loopedAddr}, many[1:maxAddrs-3]...)},
		"too many of each": {append(slices.Repeat([]string{loopedAddr, relayAddr}, maxAddrs), many...),
			append([]string{many[0], relayAddr, loopedAddr}, many[1:maxAddrs-2]...)},
		"one kind": {many, many[:maxAddrs]},
	} {
		var addrs []multiaddr.Multiaddr
		for _, s := range x.addrs {
			addrs = append(addrs, multiaddr.StringCast(s))
		}
		var got []string
		for _, b := range addrBlocks(addrs) {
			a, err := multiaddr.NewMultiaddrBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.String())
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
