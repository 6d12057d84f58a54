package node

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

var (
	ours   = []byte("correct horse battery staple")
	theirs = []byte("incorrect horse battery staple")
)

// overAll runs a test on each transport, with a Config that speaks it alone.
func overAll(t *testing.T, test func(t *testing.T, c Config)) {
	for name, c := range map[string]Config{
		TCP:    {Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Transports: []string{TCP}},
		QUIC:   {Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Transports: []string{QUIC}},
		Memory: {Listen: []string{"/memory/0"}, Transports: []string{Memory}},
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// meet is what b gets when it connects to a and opens a stream.
func meet(t *testing.T, a, b *Node) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stop, err := a.Handle(ctx, "/meet", func(s *Stream) {
		if _, err := io.Copy(s, s); err == nil {
			s.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	begin := time.Now()
	defer func() { t.Log("after", time.Since(begin)) }()
	if err := b.Connect(ctx, info(t, a)); err != nil {
		return err
	}
	s, err := b.Open(ctx, a.ID(), "/meet")
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Write([]byte("x")); err != nil {
		return err
	}
	_, err = io.ReadFull(s, make([]byte, 1))
	return err
}

func TestSecret(t *testing.T) {
	overAll(t, func(t *testing.T, c Config) {
		c.Secret = ours
		a, b := start(t, c), start(t, c)
		if err := meet(t, a, b); err != nil {
			t.Errorf("members: %v", err)
		}
		for name, secret := range map[string][]byte{"another secret": theirs, "no secret": nil} {
			c.Secret = secret
			stranger := start(t, c)
			for _, x := range []struct{ a, b *Node }{{a, stranger}, {stranger, a}} {
				err := meet(t, x.a, x.b)
				var dial *DialError
				if !errors.Is(err, ErrSecret) || !errors.As(err, &dial) {
					t.Errorf("%s: %v", name, err)
					continue
				}
				t.Logf("%s: %s", name, dial.Reason())
			}
			if len(a.Host().Peerstore().Addrs(stranger.ID())) > 0 && a.Connected(stranger.ID()) {
				t.Errorf("%s: connected", name)
			}
		}
	})
}

// No protocol at all is served to a stranger, not even identify.
func TestStrangerSeesNothing(t *testing.T) {
	overAll(t, func(t *testing.T, c Config) {
		open := c
		c.Secret = ours
		a, b := start(t, c), start(t, open)
		if err := meet(t, a, b); err == nil {
			t.Fatal("met")
		}
		known, err := b.Host().Peerstore().GetProtocols(a.ID())
		if err != nil || len(known) > 0 {
			t.Errorf("the stranger learned %v, %v", known, err)
		}
	})
}

func TestAllow(t *testing.T) {
	overAll(t, func(t *testing.T, c Config) {
		b, stranger := start(t, c), start(t, c)
		c.Allow = []peer.ID{b.ID()}
		a := start(t, c)
		if err := meet(t, a, b); err != nil {
			t.Errorf("on the list: %v", err)
		}
		err := meet(t, a, stranger)
		if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "this node is not on its allow list") {
			t.Errorf("not on the list: %v", err)
		}
		err = meet(t, stranger, a)
		if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "it is not on this node's allow list") {
			t.Errorf("dialled one that is not on the list: %v", err)
		}
	})
}

func TestAccessRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"can be guessed": {Secret: []byte("too short")},
		"at most":        {Secret: make([]byte, maxSecret+1)},
		"choose one":     {Relay: true, NAT: true},
		"with NAT set":   {Relays: []string{"/ip4/127.0.0.1/tcp/1/p2p/" + someID}},
		"node: relay":    {NAT: true, Relays: []string{"/ip4/127.0.0.1/tcp/1"}},
		"allow list of":  {Allow: make([]peer.ID, MaxAllow+1)},
	} {
		_, err := Start(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestRefusalsAreRateLimited(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	for i, x := range []struct {
		after    time.Duration
		ok       bool
		unlogged int
	}{
		{0, true, 0}, {0, false, 0}, {refusalEvery / 2, false, 0}, {refusalEvery, true, 2}, {2 * refusalEvery, true, 0},
	} {
		unlogged, ok := r.due(now.Add(x.after))
		if ok != x.ok || unlogged != x.unlogged {
			t.Errorf("%d: %d, %v", i, unlogged, ok)
		}
	}
}

// A peer of an older version of a protocol gets a reason, and at once: no timer
// is involved.
func TestUnknownVersion(t *testing.T) {
	overAll(t, func(t *testing.T, c Config) {
		a, b := start(t, c), start(t, c)
		stop, err := a.Handle(t.Context(), "/x/2", func(s *Stream) { s.Close() })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := b.Connect(t.Context(), info(t, a)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err = b.Open(t.Context(), a.ID(), "/x/1")
		if err == nil || IsTimeout(err) || !strings.Contains(err.Error(), "does not speak /x/1: it runs something else, or another version") {
			t.Errorf("open: %v", err)
		}
		t.Log("after", time.Since(begin))
	})
}

func TestCircuit(t *testing.T) {
	info, err := ParseAddr("/ip4/192.0.2.1/tcp/1/p2p/" + someID)
	if err != nil {
		t.Fatal(err)
	}
	a := circuit(info)
	if want := "/ip4/192.0.2.1/tcp/1/p2p/" + someID + "/p2p-circuit"; a.String() != want || !isRelayed(a) {
		t.Errorf("%s, want %s", a, want)
	}
}

func TestQUICFirst(t *testing.T) {
	tcp, quic := multiaddr.StringCast("/ip4/5.0.0.1/tcp/1"), multiaddr.StringCast("/ip4/5.0.0.1/udp/1/quic-v1")
	ranked := quicFirst([]multiaddr.Multiaddr{tcp, quic})
	if len(ranked) != 2 || !ranked[0].Addr.Equal(quic) || ranked[0].Delay != 0 || ranked[1].Delay < quicHeadStart {
		t.Errorf("%v", ranked)
	}
	if ranked = quicFirst([]multiaddr.Multiaddr{tcp}); len(ranked) != 1 || ranked[0].Delay != 0 {
		t.Errorf("TCP alone waits for QUIC: %v", ranked)
	}
}
