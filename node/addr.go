package node

import (
	"fmt"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// ParseAddr reads where a peer is and who it must be, such as
// /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW…. The address that a node prints of
// itself (Addrs) has this form.
func ParseAddr(s string) (peer.AddrInfo, error) {
	a, err := parse(s)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("node: %q is not a multiaddr such as /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW…: %w", s, err)
	}
	where, id := peer.SplitAddr(a)
	switch {
	case id == "":
		return peer.AddrInfo{}, fmt.Errorf("node: %s lacks the peer's ID: append /p2p/ID, "+
			"where ID (12D3KooW…) is what the peer at that address prints, with its whole multiaddr, when it starts", s)
	case len(where) == 0:
		return peer.AddrInfo{}, fmt.Errorf("node: %s says who but not where: put an address such as /ip4/192.0.2.7/tcp/4001 before /p2p/", s)
	}
	return peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{where}}, nil
}

// parse reads a multiaddr. A path takes all that follows in text, also the peer's
// ID, which is put back in its place.
func parse(s string) (multiaddr.Multiaddr, error) {
	i := strings.LastIndex(s, "/p2p/")
	if !strings.HasPrefix(s, "/unix/") || i < 0 {
		return multiaddr.NewMultiaddr(s)
	}
	path, err := multiaddr.NewMultiaddr(s[:i])
	if err != nil {
		return nil, err
	}
	id, err := multiaddr.NewMultiaddr(s[i:])
	if err != nil {
		return nil, err
	}
	return path.Encapsulate(id), nil
}
