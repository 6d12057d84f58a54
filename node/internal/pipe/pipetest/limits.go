package pipetest

import (
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// An Account counts what connections take of a host's limits, and may have nothing to
// give. The zero value has all that is asked for.
type Account struct {
	network.NullResourceManager
	Full atomic.Bool // no more connections
	Poor atomic.Bool // no more memory

	open, held atomic.Int64
}

// Open is how many connections have not ended.
func (a *Account) Open() int { return int(a.open.Load()) }

// Held is how many bytes of memory are reserved.
func (a *Account) Held() int { return int(a.held.Load()) }

// OpenConnection counts one, unless the account is full.
func (a *Account) OpenConnection(network.Direction, bool, multiaddr.Multiaddr) (network.ConnManagementScope, error) {
	if a.Full.Load() {
		return nil, network.ErrResourceLimitExceeded
	}
	a.open.Add(1)
	return &scope{NullScope: new(network.NullScope), of: a}, nil
}

// A scope is that of a connection.
type scope struct {
	*network.NullScope
	of   *Account
	done sync.Once
}

func (s *scope) ReserveMemory(n int, _ uint8) error {
	if s.of.Poor.Load() {
		return network.ErrResourceLimitExceeded
	}
	s.of.held.Add(int64(n))
	return nil
}

func (s *scope) ReleaseMemory(n int) { s.of.held.Add(-int64(n)) }

func (s *scope) Done() { s.done.Do(func() { s.of.open.Add(-1) }) }

// A Gate is a gater that lets connections in, or not: before it is known who comes, and
// after.
type Gate struct{ Accept, Secured bool }

// InterceptPeerDial lets all be dialled.
func (Gate) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAddrDial does as well.
func (Gate) InterceptAddrDial(peer.ID, multiaddr.Multiaddr) bool { return true }

// InterceptAccept is asked about an address.
func (g Gate) InterceptAccept(network.ConnMultiaddrs) bool { return g.Accept }

// InterceptSecured is asked about a peer.
func (g Gate) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool {
	return g.Secured
}

// InterceptUpgraded lets all pass.
func (Gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
