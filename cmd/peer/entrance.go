package main

import (
	"cmp"
	"net"
	"slices"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// An entrance is one way for the others to join, and whom it is for.
type entrance struct {
	how     string // empty, or as it stands in "each joins, over QUIC, with"
	addr    string
	command string // that joins by it
}

// entrances are the addresses to tell a person of: at most one of each kind. What
// other machines need comes first, TCP before QUIC, which firewalls more often
// stop. Of several that would do, the one on the route to everywhere else is the
// best guess; bridges to containers and the like are not on it.
func entrances(addrs []multiaddr.Multiaddr, route net.IP) []entrance {
	addrs = slices.Clone(addrs)
	slices.SortStableFunc(addrs, func(a, b multiaddr.Multiaddr) int {
		return cmp.Compare(remoteness(a, route), remoteness(b, route))
	})
	first := func(how string, of func(a multiaddr.Multiaddr) bool) (found []entrance) {
		if i := slices.IndexFunc(addrs, of); i >= 0 {
			found = []entrance{{how: how, addr: addrs[i].String()}}
		}
		return found
	}
	local := func(a multiaddr.Multiaddr) bool { return manet.IsIPLoopback(a) || inMemory(a) }
	own := first("on this machine only", func(a multiaddr.Multiaddr) bool { return local(a) && overTCP(a) })
	if own == nil {
		own = first("on this machine only", local)
	}
	return slices.Concat(
		first("", func(a multiaddr.Multiaddr) bool { return !local(a) && overTCP(a) }),
		first("over QUIC", func(a multiaddr.Multiaddr) bool { return !local(a) && !overTCP(a) }),
		own)
}

// remoteness ranks the addresses of one kind, the likeliest to be reached first.
func remoteness(a multiaddr.Multiaddr, route net.IP) int {
	ip, err := manet.ToIP(a)
	switch {
	case err != nil || ip.IsLinkLocalUnicast():
		return 3
	case ip.Equal(route):
		return 0
	case ip.To4() != nil:
		return 1
	}
	return 2
}

// inMemory is true of shared memory.
func inMemory(a multiaddr.Multiaddr) bool {
	_, err := a.ValueForProtocol(multiaddr.P_UNIX)
	return err == nil
}

func overTCP(a multiaddr.Multiaddr) bool {
	_, err := a.ValueForProtocol(multiaddr.P_TCP)
	return err == nil
}

// defaultRoute is this machine's address towards the internet, or nil if it has no
// way there. Nothing is sent: to connect a UDP socket is to look up a route. The
// address is one that is reserved for examples (RFC 5737).
func defaultRoute() net.IP {
	c, err := net.Dial("udp4", "203.0.113.1:9")
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP
}
