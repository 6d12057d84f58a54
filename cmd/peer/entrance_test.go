package main

import (
	"net"
	"reflect"
	"testing"

	"github.com/multiformats/go-multiaddr"
)

// TestEntrances chooses what a person is told.
func TestEntrances(t *testing.T) {
	const here = "on this machine only"
	for _, test := range []struct {
		name  string
		addrs []string
		want  []entrance
	}{
		{"everything", []string{
			"/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/udp/2/quic-v1", "/ip4/172.17.0.1/tcp/1", "/ip4/172.17.0.1/udp/2/quic-v1",
			"/ip4/10.0.0.7/tcp/1", "/ip4/10.0.0.7/udp/2/quic-v1", "/ip6/::1/tcp/3", "/ip6/fd00::2/tcp/3",
		}, []entrance{{addr: "/ip4/10.0.0.7/tcp/1"}, {how: "over QUIC", addr: "/ip4/10.0.0.7/udp/2/quic-v1"}, {how: here, addr: "/ip4/127.0.0.1/tcp/1"}}},
		{"loopback", []string{"/ip4/127.0.0.1/udp/2/quic-v1", "/ip4/127.0.0.1/tcp/1"}, []entrance{{how: here, addr: "/ip4/127.0.0.1/tcp/1"}}},
		{"QUIC", []string{"/ip4/127.0.0.1/udp/2/quic-v1", "/ip4/10.0.0.8/udp/2/quic-v1"},
			[]entrance{{how: "over QUIC", addr: "/ip4/10.0.0.8/udp/2/quic-v1"}, {how: here, addr: "/ip4/127.0.0.1/udp/2/quic-v1"}}},
		{"IPv6", []string{"/ip6/fe80::1/tcp/3", "/ip6/2001:db8::2/tcp/3"}, []entrance{{addr: "/ip6/2001:db8::2/tcp/3"}}},
		{"off the route", []string{"/ip6/2001:db8::2/tcp/3", "/ip4/10.0.0.9/tcp/1"}, []entrance{{addr: "/ip4/10.0.0.9/tcp/1"}}},
		{"a name", []string{"/dns4/peer.example/tcp/1"}, []entrance{{addr: "/dns4/peer.example/tcp/1"}}},
		{"shared memory beside", []string{"/unix/run/a", "/ip4/10.0.0.7/tcp/1", "/ip4/127.0.0.1/tcp/1"}, []entrance{{addr: "/ip4/10.0.0.7/tcp/1"}, {how: here, addr: "/ip4/127.0.0.1/tcp/1"}}},
		{"shared memory", []string{"/unix/run/a"}, []entrance{{how: here, addr: "/unix/run/a"}}},
		{"nothing", nil, nil},
	} {
		var addrs []multiaddr.Multiaddr
		for _, a := range test.addrs {
			addrs = append(addrs, multiaddr.StringCast(a))
		}
		if got := entrances(addrs, net.IPv4(10, 0, 0, 7)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestDefaultRoute is an address of this machine's own, if it has a way out.
func TestDefaultRoute(t *testing.T) {
	route := defaultRoute()
	if route == nil {
		t.Skip("no route")
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(route) {
			return
		}
	}
	t.Errorf("%v is none of %v", route, own)
}
