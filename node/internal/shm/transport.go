//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// handshakeTimeout bounds a handshake.
const handshakeTimeout = 10 * time.Second

// A Transport connects one host to others of the machine and user.
type Transport struct {
	identity
	id     peer.ID
	limits network.ResourceManager
	gate   connmgr.ConnectionGater // may be nil
	place  place
}

var _ transport.Transport = (*Transport)(nil)

// New makes the transport of the host with that key. It is a constructor for
// libp2p.Transport. gate may be nil, secret empty. It fails where there can be no
// sockets; see Available.
func New(key crypto.PrivKey, limits network.ResourceManager, gate connmgr.ConnectionGater, secret pnet.PSK) (*Transport, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	p, err := openPlace()
	if err != nil {
		return nil, err
	}
	return &Transport{identity: identity{key: key, secret: secret}, id: id, limits: limits, gate: gate, place: p}, nil
}

// Available is nil if a host can have this transport here, else the reason.
func Available() error {
	_, err := openPlace()
	return err
}

// Address is what to listen on: any free name.
func Address() (multiaddr.Multiaddr, error) {
	p, err := openPlace()
	if err != nil {
		return nil, err
	}
	return p.address(anyName), nil
}

// CanDial reports whether the address is of a peer that this one shares a kernel,
// a directory and a user with.
func (t *Transport) CanDial(a multiaddr.Multiaddr) bool {
	name, ok := t.place.name(a)
	return ok && name != anyName && name != nobody
}

// Protocols is /unix.
func (t *Transport) Protocols() []int { return []int{multiaddr.P_UNIX} }

// Proxy is false: nobody stands between.
func (t *Transport) Proxy() bool { return false }

// Dial connects to the peer, which must be the one that listens there.
func (t *Transport) Dial(ctx context.Context, a multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	name, ok := t.place.name(a)
	if !ok {
		return nil, fmt.Errorf("shm: %s is not of this machine and user", a)
	}
	limits, err := t.limits.OpenConnection(network.DirOutbound, true, pipe.Loopback)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, name, p, limits)
	if err != nil {
		limits.Done()
		return nil, err
	}
	return c, nil
}

func (t *Transport) dial(ctx context.Context, name string, p peer.ID, limits network.ConnManagementScope) (*Conn, error) {
	if err := limits.SetPeer(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	var d net.Dialer
	socket, err := d.DialContext(ctx, "unix", t.place.path(name))
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	c, err := t.shake(ctx, socket.(*net.UnixConn), dialler, name, func(id peer.ID, _ *pipe.Ends) error {
		if id != p {
			return fmt.Errorf("shm: peer id mismatch: %s listens on %s, not %s", id, name, p)
		}
		return nil
	}, limits)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return c, err
}

// shake runs the handshake and makes the connection. admit is asked about the peer
// before there is any memory. The socket is closed on an error.
func (t *Transport) shake(ctx context.Context, socket *net.UnixConn, side int, name string,
	admit func(peer.ID, *pipe.Ends) error, limits network.ConnManagementScope) (_ *Conn, err error) {
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) }) // fails only on what is closed
	defer func() {
		if err != nil {
			stop()
			_ = socket.Close() // the other error says more
		}
	}()
	if err := sameUser(socket); err != nil {
		return nil, err
	}
	key, id, err := t.introduce(socket, side, name)
	if err != nil {
		return nil, fmt.Errorf("shm: with %s: %w", name, err)
	}
	e := pipe.Ends{Local: t.id, Remote: id, Key: key, Limits: limits, Via: t, Kind: "shm",
		LocalAddr: t.place.address(nobody), RemoteAddr: t.place.address(name)}
	take := giveMemory
	if side == listener {
		e.LocalAddr, e.RemoteAddr = e.RemoteAddr, e.LocalAddr
		take = takeMemory
	}
	if err := admit(id, &e); err != nil {
		return nil, err
	}
	mem, err := take(socket)
	if err != nil {
		return nil, fmt.Errorf("shm: with %s: %w", id, err)
	}
	if !stop() {
		mem.release()
		return nil, context.Cause(ctx)
	}
	return newConn(e, side, socket, mem)
}

// Listen makes a socket, and removes those of processes that have died.
func (t *Transport) Listen(a multiaddr.Multiaddr) (transport.Listener, error) {
	name, ok := t.place.name(a)
	if !ok || name == nobody {
		return nil, fmt.Errorf("shm: cannot listen on %s: want %s", a, t.place.address(anyName))
	}
	if err := t.place.sweep(); err != nil {
		return nil, fmt.Errorf("shm: removing old sockets: %w", err)
	}
	if name == anyName {
		name = newName()
	}
	// A socket gets its name when it is listened on, so that one with a name that
	// nobody answers is left over for sure.
	early := t.place.path(unbornPrefix + newName())
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	socket.SetUnlinkOnClose(false)
	if err := os.Link(early, t.place.path(name)); err != nil {
		_, _ = os.Remove(early), socket.Close()
		return nil, fmt.Errorf("shm: cannot listen on %s: %w", a, addrInUse(err))
	}
	_ = os.Remove(early) // left over at worst, and swept some day
	return listen(t, socket, name), nil
}
