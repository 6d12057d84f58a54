package node

import (
	"context"
	"errors"
	"flag"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

var closes = flag.Int("closes", 6, "how often TestCloseDuringDials closes a node of each kind")

// absent are peers of which there is none, each with its own ID.
func absent(t *testing.T, many int, at ...string) (all []peer.AddrInfo) {
	t.Helper()
	for range many {
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		info := peer.AddrInfo{ID: id}
		for _, a := range at {
			info.Addrs = append(info.Addrs, multiaddr.StringCast(a))
		}
		all = append(all, info)
	}
	return all
}

// A node that closes while it dials, by calls of ours and by libp2p's own, ends
// those of ours with ErrClosed, and neither crashes nor leaves anything behind.
func TestCloseDuringDials(t *testing.T) {
	const dialers = 2
	there := start(t, Config{Transports: []string{TCP}})
	peers := append(absent(t, dialers, "/memory/9999", "/ip4/127.0.0.1/tcp/1"), info(t, there))
	for _, c := range []Config{
		{Transports: []string{TCP, Memory}, Listen: unreachable},
		{Transports: []string{TCP, Memory}, Listen: unreachable, NAT: true},
	} {
		for range *closes {
			closeDuringDials(t, c, peers)
		}
	}
}

func closeDuringDials(t *testing.T, c Config, peers []peer.AddrInfo) {
	t.Helper()
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var wg, begun sync.WaitGroup
	dial := func(call func(ctx context.Context, p peer.AddrInfo) error) {
		for _, p := range peers {
			begun.Add(1)
			wg.Go(func() {
				first := sync.OnceFunc(begun.Done)
				for n.ctx.Err() == nil {
					if err := call(t.Context(), p); err != nil && n.ctx.Err() != nil && !errors.Is(err, ErrClosed) {
						var dial *DialError
						if !errors.As(err, &dial) { // it failed just before
							t.Error(err)
						}
					}
					first()
				}
				if err := call(t.Context(), p); !errors.Is(err, ErrClosed) && !n.Connected(p.ID) {
					t.Errorf("after the close: %v", err)
				}
			})
		}
	}
	dial(n.Connect)
	dial(func(ctx context.Context, p peer.AddrInfo) error {
		n.host.Peerstore().AddAddrs(p.ID, p.Addrs, time.Hour)
		s, err := n.Open(ctx, p.ID, "/none")
		if err == nil {
			s.Reset(ErrGaveUp)
		}
		return err
	})
	for _, p := range peers { // as pubsub and identify do
		wg.Go(func() {
			for n.ctx.Err() == nil {
				_ = n.host.Connect(n.ctx, p)
			}
		})
	}
	begun.Wait()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// Close does not wait for a peer that does not answer.
func TestCloseDuringSlowDial(t *testing.T) {
	n := start(t, Config{Transports: []string{TCP}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent, err := manet.FromNetAddr(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	at := absent(t, 1, silent.String())[0]
	done := make(chan error, 1)
	go func() { done <- n.Connect(t.Context(), at) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // it has said nothing
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
