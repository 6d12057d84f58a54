//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

var logger = log.Logger("peermesh/shm")

const (
	// maxHandshakes bounds those under way at a listener; others wait in the kernel.
	maxHandshakes = 64
	// acceptQueue bounds the connections that nobody has accepted yet.
	acceptQueue = 16
	// acceptPause is how long a listener waits when the system lacks something,
	// descriptors most likely.
	acceptPause = 50 * time.Millisecond
)

// A server is a listener: a socket, and handshakes under way.
type server struct {
	t      *Transport
	socket *net.UnixListener
	name   string
	queue  chan *Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
	err    error
}

// addrInUse says in the network's words that a name is taken.
func addrInUse(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return syscall.EADDRINUSE
	}
	return err
}

func listen(t *Transport, socket *net.UnixListener, name string) *server {
	l := &server{t: t, socket: socket, name: name, queue: make(chan *Conn, acceptQueue)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.Go(l.run)
	return l
}

// run takes connections from the socket and starts a handshake for each.
func (l *server) run() {
	turn := make(chan struct{}, maxHandshakes)
	for {
		select {
		case turn <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		socket, err := l.socket.AcceptUnix()
		switch {
		case err == nil:
			l.work.Go(func() {
				l.welcome(socket)
				<-turn
			})
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		logger.Warnw("cannot accept", "err", err)
		<-turn
		pause := time.NewTimer(acceptPause)
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
		}
	}
}

// welcome runs one handshake.
func (l *server) welcome(socket *net.UnixConn) {
	limits, err := l.t.limits.OpenConnection(network.DirInbound, true, pipe.Loopback)
	if err != nil {
		logger.Debugw("refused", "err", err)
		_ = socket.Close() // says nothing more
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	c, err := l.t.shake(ctx, socket, listener, l.name, l.admit, limits)
	if err != nil {
		logger.Debugw("handshake failed", "err", err)
		limits.Done()
		return
	}
	select {
	case l.queue <- c:
	case <-l.ctx.Done():
		_ = c.Close() // does not fail
	}
}

// admit asks the limits and the gater.
func (l *server) admit(id peer.ID, e *pipe.Ends) error {
	if g := l.t.gate; g != nil && (!g.InterceptAccept(e) || !g.InterceptSecured(network.DirInbound, id, e)) {
		return fmt.Errorf("shm: the gater refuses %s", id)
	}
	return e.Limits.SetPeer(id)
}

// Accept waits for a connection.
func (l *server) Accept() (transport.CapableConn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.ctx.Done():
		return nil, transport.ErrListenerClosed
	}
}

// Close removes the socket, waits for the handshakes under way, and ends
// connections that nobody has accepted.
func (l *server) Close() error {
	l.once.Do(func() {
		l.err = os.Remove(l.t.place.path(l.name))
		if errors.Is(l.err, fs.ErrNotExist) {
			l.err = nil // somebody has tidied up
		}
		l.cancel()
		l.err = errors.Join(l.err, l.socket.Close())
		l.work.Wait()
		for {
			select {
			case c := <-l.queue:
				_ = c.Close() // does not fail
			default:
				return
			}
		}
	})
	return l.err
}

// Addr is the socket's address.
func (l *server) Addr() net.Addr {
	return &net.UnixAddr{Name: l.t.place.path(l.name), Net: "unix"}
}

// Multiaddr is the address with its name.
func (l *server) Multiaddr() multiaddr.Multiaddr { return l.t.place.address(l.name) }
