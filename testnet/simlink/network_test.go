package simlink

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Hosts that stand from the beginning are in the order of their identities, which follow
// from the seed; one that comes later has its own number's.
func TestIdentities(t *testing.T) {
	const hosts = 20
	ids := func(seed uint64) (all []peer.ID) {
		synctest.Test(t, func(t *testing.T) {
			n := New(Config{Seed: seed, Hosts: hosts})
			for i := range hosts {
				h := n.Host(i)
				if !h.ID().MatchesPrivateKey(h.Key()) || n.Host(i) != h {
					t.Errorf("host %d is not who it is", i)
				}
				all = append(all, h.ID())
			}
			if !slices.IsSorted(all) {
				t.Error("identities are not in the order of the hosts")
			}
			later, err := peer.IDFromPrivateKey(Key(seed, hosts))
			if err != nil || n.Host(hosts).ID() != later || slices.Contains(all, later) {
				t.Errorf("a host that comes later is %s, want %s (%v)", n.Host(hosts).ID(), later, err)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		return all
	}
	first := ids(1)
	if !slices.Equal(ids(1), first) {
		t.Error("the same seed gives other identities")
	}
	for _, id := range ids(2) {
		if slices.Contains(first, id) {
			t.Errorf("two seeds have %s", id)
		}
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(first))); len(distinct) != hosts {
		t.Errorf("%d hosts have %d identities", hosts, len(distinct))
	}
}

// As many hosts as there are addresses, each with one of its own, and no more.
func TestHostNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		defer n.Close()
		addrs := make(map[string]int)
		for _, i := range []int{0, 1, 255, 256, 257, 4095, MaxHosts - 1} {
			h := n.Host(i)
			if j, ok := addrs[h.Addr()]; ok || number(h.udpAddr().IP) != i {
				t.Errorf("host %d has the address %s, that of %d", i, h.Addr(), j)
			}
			addrs[h.Addr()] = i
			if !strings.HasPrefix(h.Addr(), h.Multiaddr().String()+"/p2p/") {
				t.Errorf("host %d listens on %s and is found at %s", i, h.Multiaddr(), h.Addr())
			}
		}
		for _, i := range []int{-1, MaxHosts} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("there is a host %d", i)
					}
				}()
				n.Host(i)
			}()
		}
	})
}

// A zero Config is a network without latency or bound, and with the documented defaults.
func TestDefaults(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		c, h := l.net.config, l.net.Host(0)
		if c.Window != DefaultWindow || c.Patience != DefaultPatience || h.queue != DefaultQueue || h.up.rate != 0 || h.down.rate != 0 {
			l.Errorf("%+v, %+v", c, h)
		}
		sent := l.send(l.near, PacketSize)
		l.took("a packet", last(l.after(time.Second), 0)-sent, 0)
		l.net.Shape(0, Port{Queue: -1})
		if h.queue != DefaultQueue {
			l.Errorf("a queue of %d bytes", h.queue)
		}
	})
}

// Nothing happens on a network that has ended, and nothing on it waits.
func TestNothingAfterTheEnd(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		l.send(l.near, 10)
		l.net.Freeze(1)
		if err := l.net.Close(); err != nil {
			l.Error(err)
		}
		for _, fault := range []func(){
			func() { l.net.Thaw(1) }, func() { l.net.Kill(0) }, func() { l.net.Restart(0) },
			func() { l.net.Cut(0, 1) }, func() { l.net.Heal(0, 1) }, func() { l.net.SetLink(0, 1, Link{}) },
		} {
			fault()
		}
		if all := l.after(time.Hour); len(all) != 0 {
			l.Errorf("landed: %v", all)
		}
		if h := l.net.Host(0); h.dead || len(h.conns) != 0 {
			l.Errorf("host 0 is %+v", h)
		}
		if _, err := l.near.Write([]byte{1}); err == nil {
			l.Error("written on a network that has ended")
		}
	})
}

// Outside of a bubble a network runs in real time.
func TestRealTime(t *testing.T) {
	const latency = 2 * time.Millisecond
	n := New(Config{Hosts: 2, Link: Link{Latency: latency}})
	l := &lab{T: t, net: n}
	l.near = l.stream(0, 1)
	start := time.Now()
	l.send(l.near, 5)
	if _, err := l.near.peer.Read(make([]byte, 5)); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < latency {
		t.Errorf("a packet took %v", took)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
