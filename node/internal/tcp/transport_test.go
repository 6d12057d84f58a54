package tcp

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	ttransport "github.com/libp2p/go-libp2p/p2p/transport/testsuite"
	"github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// longVariable has libp2p's stress tests run in full, which takes a minute.
const longVariable = "PEERMESH_LONG"

var loopback = multiaddr.StringCast("/ip4/127.0.0.1/tcp/0")

func newKey(t testing.TB) (crypto.PrivKey, peer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

// newTransport is a transport with one security layer, and yamux in batches.
func newTransport(t testing.TB, security string) (*Transport, peer.ID) {
	t.Helper()
	key, id := newKey(t)
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: Batch(yamux.DefaultTransport)}}
	var layer sec.SecureTransport
	var err error
	if security == noise.ID {
		layer, err = noise.New(noise.ID, key, muxers)
	} else {
		layer, err = libp2ptls.New(libp2ptls.ID, key, muxers)
	}
	if err != nil {
		t.Fatal(err)
	}
	u, err := upgrader.New([]sec.SecureTransport{layer}, muxers, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(u, nil), id
}

// libp2p's own suite, over each security layer.
func TestSuite(t *testing.T) {
	tests := ttransport.Subtests
	if os.Getenv(longVariable) == "" {
		tests = []ttransport.TransportSubTestFn{
			ttransport.SubtestProtocols, ttransport.SubtestBasic, ttransport.SubtestCancel, ttransport.SubtestPingPong,
			ttransport.SubtestStress1Conn1Stream100Msg, ttransport.SubtestStress1Conn100Stream100Msg10MB,
			ttransport.SubtestStreamReset,
		}
	}
	for _, security := range []string{libp2ptls.ID, noise.ID} {
		t.Run(security, func(t *testing.T) {
			a, id := newTransport(t, security)
			b, _ := newTransport(t, security)
			ttransport.SubtestTransportWithFs(t, a, b, loopback.String(), id, tests)
		})
	}
}

// Two listeners never share a port, not even of one process.
func TestListenTwice(t *testing.T) {
	a, _ := newTransport(t, libp2ptls.ID)
	b, _ := newTransport(t, libp2ptls.ID)
	l, err := a.Listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tr := range []*Transport{a, b} {
		if second, err := tr.Listen(l.Multiaddr()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("second listener: %v, %v", second, err)
		}
	}
}

func TestCanDial(t *testing.T) {
	tr, _ := newTransport(t, libp2ptls.ID)
	for text, want := range map[string]bool{
		"/ip4/1.2.3.4/tcp/1":          true,
		"/ip6/::1/tcp/1":              true,
		"/ip6zone/eth0/ip6/::1/tcp/1": true,
		"/ip4/1.2.3.4":                false,
		"/ip4/1.2.3.4/tcp/1/ws":       false,
		"/ip4/1.2.3.4/udp/1/quic-v1":  false,
		"/dns4/example.com/tcp/1":     false, // libp2p resolves names first
		"/unix/tmp/x":                 false,
	} {
		if got := tr.CanDial(multiaddr.StringCast(text)); got != want {
			t.Errorf("CanDial(%s) = %v", text, got)
		}
	}
}

// A peer that is not the one wanted is refused, and the refusal frees what the dial
// had taken.
func TestOtherPeer(t *testing.T) {
	a, _ := newTransport(t, libp2ptls.ID)
	b, _ := newTransport(t, libp2ptls.ID)
	_, stranger := newKey(t)
	l, err := a.Listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	scopes := &counting{}
	b.limits = scopes
	_, err = b.Dial(context.Background(), l.Multiaddr(), stranger)
	if mismatch := new(sec.ErrPeerIDMismatch); !errors.As(err, mismatch) {
		t.Errorf("Dial: %v", err)
	}
	if scopes.open != 1 || scopes.done == 0 {
		t.Errorf("%d scopes opened, %d closed", scopes.open, scopes.done)
	}
}

// A connection for which there is no room is not dialled.
func TestNoRoom(t *testing.T) {
	tr, id := newTransport(t, libp2ptls.ID)
	full := errors.New("full")
	for _, l := range []*counting{{refuse: full}, {refusePeer: full}} {
		tr.limits = l
		_, err := tr.Dial(context.Background(), multiaddr.StringCast("/ip4/127.0.0.1/tcp/1"), id)
		if !errors.Is(err, full) {
			t.Errorf("Dial: %v", err)
		}
		if l.open != l.done {
			t.Errorf("%d scopes opened, %d closed", l.open, l.done)
		}
	}
}

// counting is a resource manager that counts connections' scopes.
type counting struct {
	network.NullResourceManager
	refuse, refusePeer error
	open, done         int
}

func (c *counting) OpenConnection(network.Direction, bool, multiaddr.Multiaddr) (network.ConnManagementScope, error) {
	if c.refuse != nil {
		return nil, c.refuse
	}
	c.open++
	return &countedScope{of: c}, nil
}

type countedScope struct {
	network.NullScope
	of *counting
}

func (s *countedScope) SetPeer(peer.ID) error { return s.of.refusePeer }
func (s *countedScope) Done()                 { s.of.done++ }

// What libp2p may ask of a transport.
func TestDescription(t *testing.T) {
	tr, _ := newTransport(t, libp2ptls.ID)
	if tr.Proxy() || !slices.Equal(tr.Protocols(), []int{multiaddr.P_TCP}) || tr.String() != "TCP" {
		t.Errorf("%v: proxy %v, protocols %v", tr, tr.Proxy(), tr.Protocols())
	}
}
