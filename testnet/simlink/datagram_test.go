package simlink

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// sockets are those of the first two hosts.
func (l *lab) sockets() (from, to *socket) {
	l.Helper()
	from, err := l.net.Host(0).listenPacket()
	to, err2 := l.net.Host(1).listenPacket()
	if err := errors.Join(err, err2); err != nil {
		l.Fatal(err)
	}
	return from, to
}

// drain reads what has come.
func (l *lab) drain(s *socket) (all []string) {
	l.Helper()
	if err := s.SetReadDeadline(time.Now().Add(time.Nanosecond)); err != nil {
		l.Error(err)
	}
	for p := make([]byte, 100); ; {
		n, _, err := s.ReadFrom(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return all
		}
		if err != nil {
			l.Fatal(err)
		}
		all = append(all, string(p[:n]))
	}
}

func (l *lab) say(s *socket, to net.Addr, text string) {
	l.Helper()
	if n, err := s.WriteTo([]byte(text), to); err != nil || n != len(text) {
		l.Errorf("%d bytes, %v", n, err)
	}
}

// A datagram comes whole, after its latency, with the address of who sent it, and what
// the reader has no room for is cut off.
func TestDatagramCarries(t *testing.T) {
	const latency, rate = 20 * time.Millisecond, 1e6
	inLab(t, "", Config{Link: Link{Latency: latency}, Port: Port{Up: rate}}, func(l *lab) {
		from, to := l.sockets()
		p := []byte("as it was")
		start := l.net.Since()
		if _, err := from.WriteTo(p, to.LocalAddr()); err != nil {
			l.Fatal(err)
		}
		p[0] = 'X' // it has left
		got := make([]byte, 5)
		n, addr, err := to.ReadFrom(got)
		if err != nil || string(got[:n]) != "as it" || addr.String() != from.LocalAddr().String() || addr.String() != "10.0.0.1:4001" {
			l.Errorf("%q from %v, %v", got[:n], addr, err)
		}
		l.took("a datagram", l.net.Since()-start, latency+wireTime(len(p)+udpHeader, rate))
		l.say(to, addr, "back") // not much more
		l.after(time.Second)
		if all := l.drain(from); len(all) != 1 || all[0] != "back" {
			l.Errorf("%q have come back", all)
		}
	})
}

// Jitter has datagrams overtake each other, in an order that the seed says; the latency
// alone does not.
func TestDatagramsOvertake(t *testing.T) {
	var orders []string
	for _, c := range []struct {
		seed   uint64
		jitter time.Duration
	}{{1, 0}, {1, 5 * time.Millisecond}, {1, 5 * time.Millisecond}, {2, 5 * time.Millisecond}} {
		inLab(t, fmt.Sprint(c), Config{Seed: c.seed, Link: Link{Latency: time.Millisecond, Jitter: c.jitter}}, func(l *lab) {
			from, to := l.sockets()
			for i := range 20 {
				l.say(from, to.LocalAddr(), string(rune('a'+i)))
				time.Sleep(100 * time.Microsecond)
			}
			l.after(time.Second)
			order := ""
			for _, text := range l.drain(to) {
				order += text
			}
			if len(order) != 20 {
				l.Errorf("%d of 20 have come", len(order))
			}
			orders = append(orders, order)
		})
	}
	if orders[0] != "abcdefghijklmnopqrst" || orders[1] == orders[0] || orders[1] != orders[2] || orders[1] == orders[3] {
		t.Errorf("in the order of %q", orders)
	}
}

// A socket keeps so many that nobody reads, and those that come then are lost.
func TestUnreadDatagramsAreBounded(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		from, to := l.sockets()
		for i := range maxUnread + 10 {
			l.say(from, to.LocalAddr(), fmt.Sprint(i))
		}
		l.after(time.Second)
		all := l.drain(to)
		if len(all) != maxUnread || all[0] != "0" || all[maxUnread-1] != fmt.Sprint(maxUnread-1) {
			l.Errorf("%d datagrams were kept, want the first %d", len(all), maxUnread)
		}
		l.say(from, to.LocalAddr(), "then")
		l.after(time.Second)
		if all := l.drain(to); len(all) != 1 {
			l.Errorf("read anew: %q", all)
		}
	})
}

// A read waits until its deadline, which may be set while it waits; a write does not wait.
func TestDatagramDeadlines(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		from, to := l.sockets()
		start := l.net.Since()
		if err := errors.Join(to.SetDeadline(time.Now().Add(time.Second)), to.SetWriteDeadline(time.Now())); err != nil {
			l.Error(err)
		}
		if _, _, err := to.ReadFrom(nil); !errors.Is(err, os.ErrDeadlineExceeded) || l.net.Since()-start != time.Second {
			l.Errorf("%v after %v", err, l.net.Since()-start)
		}
		l.say(to, from.LocalAddr(), "late, but not too late")
		got := make(chan error, 1)
		if err := to.SetReadDeadline(time.Time{}); err != nil {
			l.Error(err)
		}
		go func() {
			_, _, err := to.ReadFrom(nil)
			got <- err
		}()
		l.after(time.Hour)
		if err := to.SetReadDeadline(time.Now()); err != nil {
			l.Error(err)
		}
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			l.Errorf("a read that waited already: %v", err)
		}
		if err := errors.Join(to.SetReadBuffer(1), to.SetWriteBuffer(1)); err != nil {
			l.Error(err)
		}
	})
}

// A host has one socket, until it is closed, killed, or the network ends; who reads from
// it then hears of that, and what was sent to it is lost.
func TestSocketEnds(t *testing.T) {
	for name, end := range map[string]func(l *lab, s *socket){
		"closed":  func(l *lab, s *socket) { l.Log(s.Close(), s.Close()) },
		"killed":  func(l *lab, s *socket) { l.net.Kill(1); l.net.Restart(1) },
		"network": func(l *lab, s *socket) { l.Log(l.net.Close()) },
	} {
		inLab(t, name, Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
			from, to := l.sockets()
			if _, err := l.net.Host(1).listenPacket(); !errors.Is(err, syscall.EADDRINUSE) {
				l.Errorf("a second socket: %v", err)
			}
			got := make(chan error, 1)
			go func() {
				_, _, err := to.ReadFrom(nil)
				got <- err
			}()
			synctest.Wait()
			l.say(from, to.LocalAddr(), "on its way")
			end(l, to)
			if err := <-got; !errors.Is(err, net.ErrClosed) {
				l.Errorf("a read says %v", err)
			}
			if _, err := to.WriteTo(nil, from.LocalAddr()); !errors.Is(err, net.ErrClosed) {
				l.Errorf("a write says %v", err)
			}
			next, err := l.net.Host(1).listenPacket()
			if name == "network" {
				if !errors.Is(err, errNetworkClosed) {
					l.Errorf("after the network: %v", err)
				}
				return
			}
			if err != nil {
				l.Fatal(err)
			}
			l.after(time.Second)
			l.say(from, next.LocalAddr(), "to the next")
			l.after(time.Second)
			if all := l.drain(next); all[len(all)-1] != "to the next" || len(all) > 2 {
				l.Errorf("the next socket has got %q", all)
			}
		})
	}
}

// A datagram to nobody is not sent: no host has that address, or listens there.
func TestDatagramToNobody(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		from, _ := l.sockets()
		for _, to := range []net.Addr{
			&net.UDPAddr{IP: net.IPv4(10, 0, 1, 1), Port: port + 1}, &net.UDPAddr{IP: net.IPv6loopback, Port: port},
			&net.TCPAddr{IP: net.IPv4(10, 0, 1, 1), Port: port}, nil,
		} {
			var e *net.OpError
			if _, err := from.WriteTo([]byte("x"), to); !errors.As(err, &e) || !errors.Is(err, syscall.EHOSTUNREACH) {
				l.Errorf("to %v: %v", to, err)
			}
		}
		l.say(from, &net.UDPAddr{IP: net.IPv4(10, 0, 7, 1), Port: port}, "to one without a socket")
		if all := l.after(time.Second); len(all) != 1 || all[0].To != 7 {
			l.Errorf("landed: %v", all)
		}
		if ip, err := (source{net.IPv4(10, 0, 0, 1)}).PreferredSourceIPForDestination(nil); err != nil || ip.String() != "10.0.0.1" {
			l.Errorf("datagrams come from %v, %v", ip, err)
		}
	})
}
