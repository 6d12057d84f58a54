package simlink

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// A backlog takes so many; those beyond get no answer, and when the listener goes, all
// who were not accepted hear of it.
func TestBacklog(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		var from, to end
		lis := l.listen(1, &to)
		var waiting []transport.CapableConn
		for range maxBacklog {
			c, _, err := l.dial(&from)
			if err != nil {
				l.Fatal(err)
			}
			waiting = append(waiting, c)
		}
		if _, _, err := l.dial(&from); !errors.Is(err, context.DeadlineExceeded) {
			l.Errorf("one more than wait: %v", err)
		}
		lis.Close()
		l.after(time.Second)
		for i, c := range waiting {
			if !c.IsClosed() {
				l.Fatalf("number %d has not heard of the end", i)
			}
		}
		if from.limits.held.Load() != 0 {
			l.Errorf("%d are counted", from.limits.held.Load())
		}
	})
}

// A host listens at its own address, once at a time, while it lives.
func TestListen(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		var e end
		own, old := l.net.Host(1).Multiaddr(), l.transport(1, &e)
		listen := func(t *Transport, a multiaddr.Multiaddr, want error) transport.Listener {
			l.Helper()
			lis, err := t.Listen(a)
			if !errors.Is(err, want) {
				l.Errorf("listening on %s: %v, want %v", a, err, want)
			}
			return lis
		}
		listen(old, l.net.Host(0).Multiaddr(), syscall.EADDRNOTAVAIL)
		lis := listen(old, own, nil)
		if lis.Addr().String() != "10.0.1.1:4001" || !lis.Multiaddr().Equal(own) {
			l.Errorf("listening on %s, %s", lis.Addr(), lis.Multiaddr())
		}
		listen(old, own, syscall.EADDRINUSE)
		if err := errors.Join(lis.Close(), lis.Close()); err != nil {
			l.Error(err)
		}
		listen(old, own, nil)
		l.net.Kill(1)
		listen(old, own, ErrKilled)
		l.net.Restart(1)
		listen(old, own, ErrKilled) // it is of the life before
		next := listen(l.transport(1, &e), own, nil)
		go l.net.Close()
		if _, err := next.Accept(); !errors.Is(err, transport.ErrListenerClosed) {
			l.Errorf("when the network ends: %v", err)
		}
		synctest.Wait()
		listen(old, own, errNetworkClosed)
		if _, err := old.Dial(l.Context(), own, l.net.Host(1).ID()); !errors.Is(err, errNetworkClosed) {
			l.Errorf("dialled when the network had ended: %v", err)
		}
	})
}

// Only addresses of hosts are dialled, and only the host's own identity has its transport.
func TestAddresses(t *testing.T) {
	inLab(t, "", Config{Hosts: 3}, func(l *lab) {
		here := l.transport(0, new(end))
		if here.Proxy() || here.String() != "simlink" || len(here.Protocols()) != 1 || here.Protocols()[0] != multiaddr.P_TCP {
			l.Errorf("%s speaks %v", here, here.Protocols())
		}
		for text, want := range map[string]int{
			"/ip4/10.0.0.1/tcp/4001": 0, "/ip4/10.0.2.1/tcp/4001": 2, "/ip4/10.1.2.1/tcp/4001": 258, "/ip4/10.255.255.1/tcp/4001": MaxHosts - 1,
			"/ip4/10.0.0.2/tcp/4001": -1, "/ip4/11.0.0.1/tcp/4001": -1, "/ip4/10.0.0.1/tcp/4002": -1, "/ip4/10.0.0.1/udp/4001": -1,
			"/ip6/::1/tcp/4001": -1, "/dns4/host/tcp/4001": -1, "/memory/1": -1,
		} {
			a := multiaddr.StringCast(text)
			if got := here.target(a); got != want || here.CanDial(a) != (want >= 0) {
				l.Errorf("%s is host %d, want %d", text, got, want)
			}
			if _, err := here.Dial(l.Context(), a, l.net.Host(1).ID()); want < 0 && !errors.Is(err, syscall.EHOSTUNREACH) {
				l.Errorf("dialling %s: %v", text, err)
			}
		}
		if number(net.IPv6loopback) != -1 || number(nil) != -1 {
			l.Error("hosts without IPv4")
		}
		if _, err := l.net.Host(0).newTransport(l.net.Host(1).ID(), &network.NullResourceManager{}, nil, nil); err == nil {
			l.Error("a host's transport for another identity")
		}
	})
}
