package node

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start brings up a node on loopback that the test closes.
func start(t testing.TB, c Config) *Node {
	t.Helper()
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func info(t testing.TB, n *Node) peer.AddrInfo {
	t.Helper()
	a, err := ParseAddr(n.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTransports(t *testing.T) {
	for _, c := range []Config{
		{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Transports: []string{TCP}},
		{Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Transports: []string{QUIC}},
		{Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}},
		{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Peers: 256},
	} {
		a, b := start(t, c), start(t, c)
		stop, err := a.Handle(t.Context(), "/echo", func(s *Stream) {
			if _, err := io.Copy(s, s); err != nil {
				t.Error(err)
			}
			s.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := b.Connect(t.Context(), info(t, a)); err != nil {
			t.Fatal(err)
		}
		s, err := b.Open(t.Context(), a.ID(), "/echo")
		if err != nil {
			t.Fatal(err)
		}
		if s.Peer() != a.ID() {
			t.Errorf("peer %s, want %s", s.Peer(), a.ID())
		}
		if _, err := s.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || string(got) != "hello" {
			t.Errorf("echo %q, %v", got, err)
		}
		s.Close()
	}
}

func TestAddrInUse(t *testing.T) {
	for _, addr := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		a := start(t, Config{Listen: []string{addr}})
		taken := strings.TrimSuffix(a.Addrs()[0].String(), "/p2p/"+a.ID().String())
		_, err := Start(t.Context(), Config{Listen: []string{taken}})
		var inUse *AddrInUseError
		if !errors.As(err, &inUse) || inUse.Addr.String() != taken {
			t.Errorf("second on %s: %v", taken, err)
		}
	}
}

func TestCloseIsQuickAndRepeatable(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	entered := make(chan struct{})
	if _, err := a.Handle(t.Context(), "/hang", func(s *Stream) {
		close(entered)
		_, err := io.Copy(io.Discard, s)
		if !errors.Is(err, ErrClosed) {
			t.Errorf("handler saw %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	s, err := b.Open(t.Context(), a.ID(), "/hang")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-entered
	begin := time.Now()
	for range 2 {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Log("closed in", time.Since(begin))
	if _, err := a.Handle(t.Context(), "/x", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("handle after close: %v", err)
	}
	if _, err := a.Open(t.Context(), b.ID(), "/x"); !errors.Is(err, ErrClosed) {
		t.Errorf("open after close: %v", err)
	}
	if _, err := io.ReadAll(s); err == nil {
		t.Error("the stream outlived its node")
	}
	s.Reset(ErrClosed)
}

func TestStartRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"unknown transport":  {Transports: []string{"carrier-pigeon"}},
		"not a multiaddr":    {Listen: []string{"localhost:4001"}},
		"speaks that":        {Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Transports: []string{QUIC}},
		"cannot expect":      {Peers: -1},
		"cannot assign":      {Listen: []string{"/ip4/192.0.2.1/tcp/0"}},
		"not a regular file": {Identity: t.TempDir()},
	} {
		_, err := Start(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "node: ") {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start with an ended context: %v", err)
	}
}

// Options that libp2p will not have leave nothing behind.
func TestStartRefusesOptions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	odd := errors.New("odd")
	_, err := Start(t.Context(), Config{Transports: []string{Memory}, Options: []libp2p.Option{func(*libp2p.Config) error { return odd }}})
	if !errors.Is(err, odd) || !strings.HasPrefix(err.Error(), "node: cannot start libp2p: ") {
		t.Error(err)
	}
}

func TestEverywhere(t *testing.T) {
	n, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, a := range n.Addrs() {
		kinds[transportOf(a)] = true
		if _, err := ParseAddr(a.String()); err != nil {
			t.Error(err)
		}
	}
	if !kinds[TCP] || !kinds[QUIC] {
		t.Errorf("addresses %v", n.Addrs())
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
