package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
)

// ErrSelf is what Learn says of an address of the node's own.
var ErrSelf = errors.New("node: this is the node's own address")

// Learn asks an address who is there, and connects to whom it finds. The first time
// that is a question of trust: whoever answers has proved that it holds the key of the
// ID that Learn returns, and nothing else. Keep the ID, and want the same the next time.
//
// It dials for somebody who is nobody. The handshake then says who answered instead,
// and a second one, for that ID, proves it.
func (n *Node) Learn(ctx context.Context, at multiaddr.Multiaddr) (peer.ID, error) {
	nobody, err := n.access.anybody(func(p peer.ID) bool { return p == n.ID() || n.Connected(p) })
	if err != nil {
		return "", err
	}
	id, err := n.whoever(ctx, nobody, at)
	if err != nil {
		return "", err
	}
	if id == n.ID() {
		return id, fmt.Errorf("%w: %s", ErrSelf, at)
	}
	return id, n.Connect(ctx, peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{at}})
}

// whoever dials one peer at an address, and says which one was there.
func (n *Node) whoever(ctx context.Context, expected peer.ID, at multiaddr.Multiaddr) (peer.ID, error) {
	ctx, done, err := n.calling(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	book := n.host.Peerstore()
	book.AddAddrs(expected, []multiaddr.Multiaddr{at}, peerstore.TempAddrTTL)
	_, err = n.dial(n.wanted(ctx), expected)
	var other sec.ErrPeerIDMismatch
	switch {
	case err == nil:
		return expected, nil
	case errors.As(err, &other):
		book.ClearAddrs(expected)
		return other.Actual, nil
	case errors.Is(err, swarm.ErrDialToSelf):
		book.ClearAddrs(expected)
		return n.ID(), nil
	}
	return "", dialError(expected, err)
}

// anybody is an ID that this node may dial: that of no peer or, where there is a list of
// those who may be dialled, of one on it who is not known to be elsewhere.
func (a *access) anybody(elsewhere func(peer.ID) bool) (peer.ID, error) {
	for p := range a.allow {
		if !elsewhere(p) {
			return p, nil
		}
	}
	if a.allow != nil {
		return "", errors.New("node: whoever may connect is known already")
	}
	key, err := newKey()
	if err != nil {
		return "", err
	}
	return peer.IDFromPrivateKey(key)
}
