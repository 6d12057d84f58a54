package simlink

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

const faultLatency = 10 * time.Millisecond

// What is sent over a way that is cut lands once it is healed, in order, and what was
// on its way does so too: a latency later, as if sent then.
func TestCutAndHeal(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: faultLatency}}, func(l *lab) {
		l.send(l.near, 1)
		time.Sleep(faultLatency / 2)
		l.net.Cut(0, 1)
		l.net.Cut(1, 0) // once more, the other way round: the same
		l.send(l.near, 2)
		time.Sleep(faultLatency)
		l.send(l.near, 3)
		if all := l.after(time.Second); len(all) != 0 {
			l.Errorf("landed in spite of the cut: %v", all)
		}
		healed := l.net.Since()
		l.net.Heal(0, 1)
		l.net.Heal(0, 1)
		all := l.after(time.Second)
		if len(all) != 3 {
			l.Fatalf("%d of 3 have landed", len(all))
		}
		for i, e := range all {
			if l.took("after healing, a packet", e.At-healed, faultLatency); e.Bytes != i+1 {
				l.Errorf("number %d is %v", i, e)
			}
		}
	})
}

// Silence breaks a connection when Patience has run out since the fault began, which
// is anew for each fault.
func TestPatience(t *testing.T) {
	const patience = 10 * time.Second
	for name, c := range map[string]struct{ fault, heal func(n *Network) }{
		"cut":    {func(n *Network) { n.Cut(0, 1) }, func(n *Network) { n.Heal(0, 1) }},
		"freeze": {func(n *Network) { n.Freeze(1) }, func(n *Network) { n.Thaw(1) }},
	} {
		inLab(t, name, Config{Link: Link{Latency: faultLatency}, Patience: patience}, func(l *lab) {
			conn := l.near.conn
			c.fault(l.net)
			time.Sleep(patience - time.Second)
			c.heal(l.net)
			time.Sleep(2 * time.Second)
			c.fault(l.net)
			time.Sleep(patience - time.Second)
			if conn.IsClosed() {
				l.Fatal("broken too early")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if !conn.IsClosed() {
				l.Fatal("the connection outlives its patience")
			}
			if _, err := l.near.Write([]byte("x")); !errors.Is(err, syscall.ETIMEDOUT) {
				l.Errorf("then a write says %v", err)
			}
		})
	}
}

// A frozen host neither reads nor sends. Thawed, it does all that at once, in order.
func TestFreezeAndThaw(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: faultLatency}}, func(l *lab) {
		back := l.stream(1, 0)
		l.net.Freeze(1)
		l.net.Freeze(1)
		for i := range 3 {
			l.send(l.near, i+1)
			time.Sleep(time.Millisecond)
		}
		l.send(back, 9)
		if all := l.after(time.Second); len(all) != 0 {
			l.Errorf("landed in spite of the freeze: %v", all)
		}
		l.net.Thaw(1)
		thawed := l.net.Since()
		l.net.Thaw(1)
		all := l.after(time.Second)
		if len(all) != 4 {
			l.Fatalf("%d of 4 have landed", len(all))
		}
		for i, e := range all[:3] {
			if took := e.At - thawed; e.Bytes != i+1 || took > 3*settling {
				l.Errorf("number %d is %v, %v after the thaw", i, e, took)
			}
		}
		l.took("what the frozen host had written", all[3].At-thawed, faultLatency)
	})
}

// Shape and SetLink are for what is sent from then on, and nothing overtakes.
func TestShapeAndSetLink(t *testing.T) {
	inLab(t, "shape", Config{}, func(l *lab) {
		for _, rate := range []float64{1e6, 1e5, 0} {
			l.net.Shape(0, Port{Up: rate})
			sent := l.send(l.near, 1000)
			all := l.after(time.Second)
			l.took("a packet", all[len(all)-1].At-sent, wireTime(1000+Header, rate))
		}
	})
	inLab(t, "link", Config{Link: Link{Latency: time.Second}}, func(l *lab) {
		first := l.send(l.near, 1)
		time.Sleep(time.Millisecond)
		l.net.SetLink(1, 0, Link{Latency: time.Millisecond})
		l.send(l.near, 2)
		all := l.after(2 * time.Second)
		if len(all) != 2 || all[0].Bytes != 1 || all[1].At-all[0].At > settling {
			l.Errorf("a packet of before and one of after: %v", all)
		}
		l.took("the first", all[0].At-first, time.Second)
		third := l.send(l.near, 3)
		all = l.after(time.Second)
		l.took("the third", all[2].At-third, time.Millisecond)
	})
}

// What a process has written before it is killed arrives, and then the end of its
// connection. A host that is restarted has none, and takes new ones.
func TestKillAndRestart(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: faultLatency}}, func(l *lab) {
		far := l.near.peer
		killed := l.send(l.near, 5)
		l.net.Kill(0)
		l.net.Kill(0)
		if _, err := l.near.Write([]byte("x")); !errors.Is(err, ErrKilled) {
			l.Errorf("a dead process writes: %v", err)
		}
		all := l.after(time.Second)
		if len(all) != 1 {
			l.Fatalf("landed: %v", all)
		}
		l.took("what was written", all[0].At-killed, faultLatency)
		var broken *network.ConnError
		if _, err := far.Read(make([]byte, 10)); !errors.As(err, &broken) || !broken.Remote {
			l.Errorf("the other end reads %v", err)
		}
		if _, err := l.net.Host(0).listenPacket(); !errors.Is(err, ErrKilled) {
			l.Errorf("a dead host listens: %v", err)
		}
		l.net.Restart(0)
		again := l.send(l.stream(0, 1), 6)
		all = l.after(time.Second)
		l.took("of the next life, a packet", all[len(all)-1].At-again, faultLatency)
	})
}

// Split cuts between its sides only, and Join heals that.
func TestSplitAndJoin(t *testing.T) {
	inLab(t, "", Config{Hosts: 5}, func(l *lab) {
		cut := func() (all [][2]int) {
			for a := range 5 {
				for b := range a {
					l.net.mu.Lock()
					ways := l.net.both(b, a)
					l.net.mu.Unlock()
					if ways[0].cut != ways[1].cut {
						l.Errorf("one way between %d and %d is cut", b, a)
					}
					if ways[0].cut {
						all = append(all, [2]int{b, a})
					}
				}
			}
			return all
		}
		l.net.Split([]int{0, 1}, []int{2}, []int{3})
		if got, want := cut(), [][2]int{{0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}; !slices.Equal(got, want) {
			l.Errorf("cut are %v, want %v", got, want)
		}
		l.net.Join([]int{0, 1}, []int{2}, []int{3})
		if got := cut(); len(got) != 0 {
			l.Errorf("still cut are %v", got)
		}
	})
}

// Datagrams are lost by a loss, a full uplink, a cut, and at a frozen host; nobody
// sends them again.
func TestDatagrams(t *testing.T) {
	const many = 1000
	for name, c := range map[string]struct {
		config   Config
		fault    func(n *Network)
		from, to int
	}{
		"whole":  {Config{}, func(*Network) {}, many, many},
		"loss":   {Config{Link: Link{Loss: 0.1}}, func(*Network) {}, many * 85 / 100, many * 95 / 100},
		"queue":  {Config{Port: Port{Up: 1e6, Queue: 10_000}}, func(*Network) {}, 10, 11},
		"cut":    {Config{}, func(n *Network) { n.Cut(0, 1) }, 0, 0},
		"freeze": {Config{}, func(n *Network) { n.Freeze(1) }, 0, 0},
	} {
		inLab(t, name, c.config, func(l *lab) {
			from, err := l.net.Host(0).listenPacket()
			to, err2 := l.net.Host(1).listenPacket()
			if err := errors.Join(err, err2); err != nil {
				l.Fatal(err)
			}
			c.fault(l.net)
			for range many {
				if _, err := from.WriteTo(make([]byte, 1000), to.LocalAddr()); err != nil {
					l.Fatal(err)
				}
			}
			if got := len(l.after(time.Second)); got < c.from || got > c.to {
				l.Errorf("%d of %d have landed, want %d to %d", got, many, c.from, c.to)
			}
			l.net.Heal(0, 1)
			l.net.Thaw(1)
			if got := len(l.after(time.Second)); got > c.to {
				l.Errorf("after the fault %d have landed", got)
			}
			if _, err := from.WriteTo(nil, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port}); !errors.Is(err, syscall.EHOSTUNREACH) {
				l.Errorf("to an address of no host: %v", err)
			}
		})
	}
}

// A way that is cut while a host is frozen holds back what thawing lets go.
func TestFaultsMeet(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: faultLatency}}, func(l *lab) {
		l.net.Freeze(0)
		l.net.Cut(0, 1)
		l.send(l.near, 1)
		l.net.Thaw(0)
		if all := l.after(time.Second); len(all) != 0 {
			l.Errorf("landed: %v", all)
		}
		l.net.Heal(0, 1)
		if all := l.after(time.Second); len(all) != 1 {
			l.Errorf("landed: %v", all)
		}
	})
}
