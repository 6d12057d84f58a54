package node

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/net/pnet"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// firstTimeout is how long a new connection has for its first bytes.
const firstTimeout = 5 * time.Second

// An upgrader makes the connections of TCP, and those that go through a relay,
// private: with a secret, every byte is encrypted with it before all else, as
// libp2p's private networks are (XSalsa20 under a pre-shared key; the spec is
// libp2p's "pnet/Private-Networks-PSK-V1"). A port scanner cannot even tell that
// this is libp2p. QUIC cannot do that, which is why the proof exists.
//
// Why not libp2p.PrivateNetwork, which does the same? It turns QUIC off, and two
// peers with different secrets are garbage to each other: about half the time
// the first byte reads as the length of more to come, and both wait until they
// time out. Here whoever hears anything but hello hangs up at once.
type upgrader struct {
	transport.Upgrader
	access *access
}

func (a *access) upgrader(u transport.Upgrader) transport.Upgrader { return &upgrader{u, a} }

// speaks reports whether a transport is one of protocol p.
func speaks(t transport.Transport, p int) bool { return slices.Contains(t.Protocols(), p) }

// hardens reports whether the connections of t are to be made private.
func hardens(t transport.Transport) bool {
	return speaks(t, multiaddr.P_TCP) || speaks(t, multiaddr.P_CIRCUIT)
}

func (u *upgrader) Upgrade(ctx context.Context, t transport.Transport, raw manet.Conn, d network.Direction, p peer.ID, s network.ConnManagementScope) (transport.CapableConn, error) {
	if !hardens(t) {
		return u.Upgrader.Upgrade(ctx, t, raw, d, p, s)
	}
	f, err := u.access.first(raw)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	c, err := u.Upgrader.Upgrade(ctx, t, f.conn(), d, p, s)
	if err != nil {
		return nil, f.explain(err)
	}
	if speaks(t, multiaddr.P_CIRCUIT) { // which is made behind the guard's back
		if err := u.access.prove(ctx, c, d == network.DirOutbound); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (u *upgrader) UpgradeGatedMaListener(t transport.Transport, l transport.GatedMaListener) transport.Listener {
	if hardens(t) {
		l = &firstListener{l, u.access}
	}
	list := u.Upgrader.UpgradeGatedMaListener(t, l)
	if speaks(t, multiaddr.P_CIRCUIT) && !u.access.open() {
		return u.access.listener(list)
	}
	return list
}

// UpgradeListener is an older form of UpgradeGatedMaListener.
func (u *upgrader) UpgradeListener(t transport.Transport, l manet.Listener) transport.Listener {
	return u.UpgradeGatedMaListener(t, u.GateMaListener(l))
}

type firstListener struct {
	transport.GatedMaListener
	access *access
}

func (l *firstListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	raw, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	f, err := l.access.first(raw)
	if err != nil {
		scope.Done()
		return nil, nil, errors.Join(err, raw.Close())
	}
	f.refused = func() { l.access.log.add("somebody", raw.RemoteMultiaddr(), errFirst) }
	raw.SetReadDeadline(time.Now().Add(firstTimeout)) // a connection that is gone will say so when it is read
	return f.conn(), scope, nil
}

// errFirst is what a side sees that hears other first bytes than libp2p's.
var errFirst = errors.New("its first bytes are not those of a peer that shares the secret")

// A firstConn is a socket that ends at the first byte that is not of hello.
type firstConn struct {
	manet.Conn
	private net.Conn // where bytes are in the clear: Conn itself without a secret
	secret  bool
	want    string // what is still to come of hello
	strange bool   // other bytes came
	refused func()
}

func (a *access) first(raw manet.Conn) (*firstConn, error) {
	f := &firstConn{Conn: raw, private: raw, want: hello}
	if a.psk == nil {
		return f, nil
	}
	var err error
	f.secret = true
	f.private, err = pnet.NewProtectedConn(a.psk, raw)
	return f, err
}

func (f *firstConn) Read(p []byte) (int, error) {
	n, err := f.private.Read(p)
	if f.want == "" || n == 0 {
		return n, err
	}
	k := min(n, len(f.want))
	if string(p[:k]) != f.want[:k] {
		if f.refused != nil {
			f.refused()
		}
		f.strange = true
		f.Conn.Close()
		return 0, errFirst
	}
	if f.want = f.want[k:]; f.want == "" {
		f.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (f *firstConn) Write(p []byte) (int, error) { return f.private.Write(p) }

// explain tells a side that dialled why it was hung up on.
func (f *firstConn) explain(err error) error {
	switch {
	case f.strange && f.secret:
		return &refusal{ErrSecret, "it does not share this node's secret, or is no peer"}
	case f.strange:
		return &refusal{ErrSecret, "it speaks in secret, or is no peer"}
	case f.want != hello || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE):
		return err
	case f.secret:
		return &refusal{ErrSecret, "it hung up on the first bytes: it has another secret, or none"}
	}
	return &refusal{ErrSecret, "it hung up on the first bytes: it wants a secret, or is no peer"}
}

// conn is the connection for an upgrader, which asks those that go through a
// relay for what they are.
func (f *firstConn) conn() manet.Conn {
	if s, ok := f.Conn.(network.ConnStat); ok {
		return struct {
			*firstConn
			network.ConnStat
		}{f, s}
	}
	return f
}
