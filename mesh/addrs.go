package mesh

import (
	"slices"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Kinds of addresses, by how many peers they serve.
const (
	direct   = iota // from other machines
	relayed         // from anywhere, through a relay
	inMemory        // from this machine, in memory
	looped          // from this machine, by its loopback
	kinds
)

func kindOf(a multiaddr.Multiaddr) int {
	has := func(protocol int) bool {
		_, err := a.ValueForProtocol(protocol)
		return err == nil
	}
	switch {
	case has(multiaddr.P_CIRCUIT):
		return relayed
	case has(multiaddr.P_UNIX), has(multiaddr.P_MEMORY):
		return inMemory
	case manet.IsIPLoopback(a):
		return looped
	}
	return direct
}

// foremost orders addresses so that a cut from the end takes the least: the first of
// each kind come before all others. A machine may have more interfaces than an
// announcement has room, and the only address that leads through a NAT is its last.
func foremost(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
	var first, rest [kinds][]multiaddr.Multiaddr
	for _, a := range addrs {
		if k := kindOf(a); first[k] == nil {
			first[k] = []multiaddr.Multiaddr{a}
		} else {
			rest[k] = append(rest[k], a)
		}
	}
	return slices.Concat(slices.Concat(first[:]...), slices.Concat(rest[:]...))
}

// addrBlocks are the addresses of an announcement in binary: as many as it has room
// for.
func addrBlocks(addrs []multiaddr.Multiaddr) [][]byte {
	fits := slices.DeleteFunc(slices.Clone(addrs), func(a multiaddr.Multiaddr) bool { return len(a.Bytes()) > maxAddr })
	var blocks [][]byte
	for _, a := range foremost(fits) {
		more := append(blocks, a.Bytes())
		if len(more) > maxAddrs || len(appendBlocks(nil, more)) > maxAnnouncement/2 {
			break
		}
		blocks = more
	}
	return blocks
}
