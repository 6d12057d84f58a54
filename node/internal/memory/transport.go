package memory

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// acceptQueue bounds the connections of a listener that nobody has accepted yet.
const acceptQueue = 128

// A Transport connects one host to others of the process.
type Transport struct {
	id     peer.ID
	key    crypto.PrivKey
	limits network.ResourceManager
	gate   connmgr.ConnectionGater // may be nil
	secret pnet.PSK
}

var _ transport.Transport = (*Transport)(nil)

// New makes the transport of the host with that key. It is a constructor for
// libp2p.Transport. gate may be nil, secret empty.
func New(key crypto.PrivKey, limits network.ResourceManager, gate connmgr.ConnectionGater, secret pnet.PSK) (*Transport, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &Transport{id: id, key: key, limits: limits, gate: gate, secret: secret}, nil
}

// register holds the process's listeners by number.
var register = struct {
	sync.Mutex
	listeners map[uint64]*listener
}{listeners: make(map[uint64]*listener)}

// number reads an address; false if it is not /memory/N.
func number(a multiaddr.Multiaddr) (uint64, bool) {
	if len(a) != 1 || a[0].Protocol().Code != multiaddr.P_MEMORY {
		return 0, false
	}
	n, err := strconv.ParseUint(a[0].Value(), 10, 64)
	return n, err == nil
}

func address(n uint64) multiaddr.Multiaddr {
	return multiaddr.StringCast("/memory/" + strconv.FormatUint(n, 10))
}

// nobody is the address of a dialler: it cannot be dialled back.
var nobody = address(0)

// CanDial reports whether the address is one of a listener of some process.
func (t *Transport) CanDial(a multiaddr.Multiaddr) bool {
	n, ok := number(a)
	return ok && n != 0
}

// Protocols is /memory.
func (t *Transport) Protocols() []int { return []int{multiaddr.P_MEMORY} }

// Proxy is false: nobody stands between.
func (t *Transport) Proxy() bool { return false }

// Listen enters the host in the register.
func (t *Transport) Listen(a multiaddr.Multiaddr) (transport.Listener, error) {
	n, ok := number(a)
	if !ok {
		return nil, fmt.Errorf("memory: cannot listen on %s: want /memory/N", a)
	}
	register.Lock()
	defer register.Unlock()
	for any := n == 0; any && (n == 0 || register.listeners[n] != nil); {
		n = rand.Uint64()
	}
	if register.listeners[n] != nil {
		return nil, fmt.Errorf("memory: cannot listen on %s: %w", a, syscall.EADDRINUSE)
	}
	l := &listener{t: t, number: n, addr: address(n), queue: make(chan *conn, acceptQueue), done: make(chan struct{})}
	register.listeners[n] = l
	return l, nil
}

// Dial connects to a listener, which must be the peer's.
func (t *Transport) Dial(ctx context.Context, a multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	n, ok := number(a)
	if !ok {
		return nil, fmt.Errorf("memory: cannot dial %s: want /memory/N", a)
	}
	register.Lock()
	l := register.listeners[n]
	register.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case l == nil:
		return nil, fmt.Errorf("memory: nobody in this process listens on %s: %w", a, syscall.ECONNREFUSED)
	case l.t.id != p:
		return nil, fmt.Errorf("memory: peer id mismatch: %s listens on %s, not %s", l.t.id, a, p)
	case subtle.ConstantTimeCompare(l.t.secret, t.secret) != 1:
		return nil, errors.New("memory: the two sides are of different private networks")
	}
	near, far, err := join(t, l)
	if err != nil {
		return nil, err
	}
	select {
	case l.queue <- far:
		if l.closed() {
			_ = far.Close() // the listener may have emptied its queue before; does not fail
		}
		return near, nil
	case <-l.done:
		err = fmt.Errorf("memory: %s: %w", a, syscall.ECONNREFUSED)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = near.Close() // does not fail
	return nil, err
}

// join makes the two ends of a connection, if the limits and gates of both allow.
func join(t *Transport, l *listener) (near, far *conn, err error) {
	out, err := scope(t.limits, network.DirOutbound, l.t.id)
	if err != nil {
		return nil, nil, err
	}
	in, err := scope(l.t.limits, network.DirInbound, t.id)
	if err != nil {
		out.Done()
		return nil, nil, fmt.Errorf("memory: refused by the other side: %w", err)
	}
	near = newConn(pipe.Ends{Local: t.id, Remote: l.t.id, Key: l.t.key.GetPublic(),
		LocalAddr: nobody, RemoteAddr: l.addr, Limits: out, Via: t, Kind: "memory"})
	far = newConn(pipe.Ends{Local: l.t.id, Remote: t.id, Key: t.key.GetPublic(),
		LocalAddr: l.addr, RemoteAddr: nobody, Limits: in, Via: l.t, Kind: "memory"})
	near.other, far.other = far, near
	if g := l.t.gate; g != nil && (!g.InterceptAccept(far) || !g.InterceptSecured(network.DirInbound, t.id, far)) {
		_ = near.Close() // does not fail
		return nil, nil, errors.New("memory: refused by the other side's gater")
	}
	return near, far, nil
}

func scope(limits network.ResourceManager, d network.Direction, p peer.ID) (network.ConnManagementScope, error) {
	s, err := limits.OpenConnection(d, false, pipe.Loopback)
	if err != nil {
		return nil, err
	}
	if err := s.SetPeer(p); err != nil {
		s.Done()
		return nil, err
	}
	return s, nil
}

// A listener is a host's entry in the register.
type listener struct {
	t      *Transport
	number uint64
	addr   multiaddr.Multiaddr
	queue  chan *conn
	done   chan struct{}
	once   sync.Once
}

// Accept waits for a connection.
func (l *listener) Accept() (transport.CapableConn, error) {
	select {
	case <-l.done:
		return nil, transport.ErrListenerClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, transport.ErrListenerClosed
	}
}

func (l *listener) closed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Close takes the entry back and ends connections that nobody has accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		register.Lock()
		delete(register.listeners, l.number)
		register.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				_ = c.Close() // does not fail
			default:
				return
			}
		}
	})
	return nil
}

// Addr is the address in net's words.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.addr.String(), Net: "memory"} }

// Multiaddr is the address with its number.
func (l *listener) Multiaddr() multiaddr.Multiaddr { return l.addr }
