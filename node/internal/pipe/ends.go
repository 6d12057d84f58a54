package pipe

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// Backlog bounds the streams of a connection that nobody has accepted yet.
const Backlog = 256

var (
	// ErrClosed is the error of calls on what this side has closed.
	ErrClosed = errors.New("stream closed")
	// ErrStopped is the error of a write that the other side will not read.
	ErrStopped = errors.New("stream closed by its reader")
	// ErrGone is the error of a connection whose other end went without a word.
	ErrGone = errors.New("connection ended")
)

// Ends is what a connection knows of its two ends. Once made it does not change.
type Ends struct {
	Local, Remote         peer.ID
	Key                   crypto.PubKey // of Remote
	LocalAddr, RemoteAddr multiaddr.Multiaddr
	Limits                network.ConnManagementScope
	Via                   transport.Transport
	Kind                  string // the transport's name in a state
}

// LocalPeer is this end's peer.
func (e *Ends) LocalPeer() peer.ID { return e.Local }

// RemotePeer is the other end's peer, which has proved that it is.
func (e *Ends) RemotePeer() peer.ID { return e.Remote }

// RemotePublicKey is the key that it has proved to hold.
func (e *Ends) RemotePublicKey() crypto.PubKey { return e.Key }

// ConnState names the transport. There is no security protocol and no muxer.
func (e *Ends) ConnState() network.ConnectionState {
	return network.ConnectionState{Transport: e.Kind}
}

// LocalMultiaddr is this end's address.
func (e *Ends) LocalMultiaddr() multiaddr.Multiaddr { return e.LocalAddr }

// RemoteMultiaddr is the other end's address.
func (e *Ends) RemoteMultiaddr() multiaddr.Multiaddr { return e.RemoteAddr }

// Scope is what the connection may use.
func (e *Ends) Scope() network.ConnScope { return e.Limits }

// Transport made the connection.
func (e *Ends) Transport() transport.Transport { return e.Via }

// Local is the error of a stream that this side has reset.
func Local(code network.StreamErrorCode) error { return &network.StreamError{ErrorCode: code} }

// Remote is the error of a stream that the other side has reset.
func Remote(code network.StreamErrorCode) error {
	return &network.StreamError{ErrorCode: code, Remote: true}
}

// Loopback is the address that libp2p's limits know a connection within a machine
// by. They count connections by IP address; what has none shares the strictest
// limit of all with every other such connection, and this is what it is anyway.
var Loopback = multiaddr.StringCast("/ip4/127.0.0.1")
