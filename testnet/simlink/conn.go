package simlink

import (
	"context"
	"fmt"
	"sync"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// maxUnaccepted bounds the streams that wait for one end's AcceptStream.
const maxUnaccepted = 4096

// A pair is a connection as a whole.
type pair struct {
	dialer  int
	number  uint64 // of its dialler's to the other host
	streams uint64 // so far
}

// A conn is one end of a connection. Both know who the other is, because the
// network does: nothing is encrypted, nothing forged.
type conn struct {
	pair *pair
	host *Host
	peer *conn
	life int

	// Guarded by the network's lock.
	t        *Transport
	scope    network.ConnManagementScope
	err      error // once it is over
	streams  map[*stream]struct{}
	accepted []*stream // not yet taken by AcceptStream
	ready    sync.Cond
}

var _ transport.CapableConn = (*conn)(nil)

// newConns makes the ends of a connection. The lock is held.
func newConns(p *pair, from, to *Host) (near, far *conn) {
	end := func(h *Host) *conn {
		c := &conn{pair: p, host: h, life: h.life, streams: make(map[*stream]struct{}), ready: sync.Cond{L: &h.net.mu}}
		h.conns[c] = struct{}{}
		return c
	}
	near, far = end(from), end(to)
	near.peer, far.peer = far, near
	return near, far
}

// take makes the end that of a transport, which pays for it by the scope.
func (c *conn) take(t *Transport, scope network.ConnManagementScope) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.t = t
	if c.err != nil { // it broke before anybody had it
		scope.Done()
		scope = &network.NullScope{}
	}
	c.scope = scope
}

// shut ends the connection at this end, for a reason of its own, and tells the
// other. What was written before leaves before. The lock is held.
func (c *conn) shut(code network.ConnErrorCode, why error) {
	if c.err != nil {
		return
	}
	for _, s := range c.open() {
		for s.send() {
		}
	}
	c.broken(why)
	peer := c.peer
	c.host.net.post(c.host, peer.host, &packet{kind: "close", conn: c, land: func() {
		peer.broken(&network.ConnError{Remote: true, ErrorCode: code})
	}})
}

// broken ends this end. The lock is held.
func (c *conn) broken(why error) {
	if c.err != nil {
		return
	}
	c.err = why
	for _, s := range c.open() {
		s.broken(fmt.Errorf("simlink: connection with host %d: %w", c.peer.host.index, why))
	}
	c.accepted = nil
	c.ready.Broadcast()
	delete(c.host.conns, c)
	if c.scope != nil {
		c.scope.Done()
	}
}

// Close ends the connection on both sides.
func (c *conn) Close() error { return c.CloseWithError(network.ConnNoError) }

// CloseWithError is Close, with a code for the other side.
func (c *conn) CloseWithError(code network.ConnErrorCode) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.shut(code, &network.ConnError{ErrorCode: code})
	return nil
}

// IsClosed reports whether the connection is over at this end.
func (c *conn) IsClosed() bool {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	return c.err != nil
}

// OpenStream does not wait: the other side learns of the stream by what is written
// to it first.
func (c *conn) OpenStream(context.Context) (network.MuxedStream, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	return newStreams(c), nil
}

// AcceptStream waits for one.
func (c *conn) AcceptStream() (network.MuxedStream, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for len(c.accepted) == 0 && c.err == nil {
		c.ready.Wait()
	}
	if c.err != nil {
		return nil, c.err
	}
	s := c.accepted[0]
	c.accepted = c.accepted[1:]
	return s, nil
}

// As finds nothing below.
func (c *conn) As(any) bool { return false }

// LocalPeer is this end's identity.
func (c *conn) LocalPeer() peer.ID { return c.host.id }

// RemotePeer is the other end's.
func (c *conn) RemotePeer() peer.ID { return c.peer.host.id }

// RemotePublicKey is the other end's.
func (c *conn) RemotePublicKey() crypto.PubKey { return c.peer.host.key.GetPublic() }

// ConnState names the transport; there is neither muxer nor security to name.
func (c *conn) ConnState() network.ConnectionState {
	return network.ConnectionState{Transport: "simlink"}
}

// LocalMultiaddr is where this end's host listens, whoever dialled.
func (c *conn) LocalMultiaddr() multiaddr.Multiaddr { return c.host.addr }

// RemoteMultiaddr is where the other end's host listens.
func (c *conn) RemoteMultiaddr() multiaddr.Multiaddr { return c.peer.host.addr }

// Scope is what the connection is paid by.
func (c *conn) Scope() network.ConnScope { return c.scope }

// Transport is this end's.
func (c *conn) Transport() transport.Transport { return c.t }
