package simlink

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// landedOf is how many bytes have landed of each stream, by its name on the way from a
// host, up to an instant.
func (l *lab) landedOf(from int, until time.Duration) map[uint64]int {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	got := make(map[uint64]int)
	for _, e := range l.landed {
		if e.From == from && e.At <= until {
			got[e.Conn<<32|e.Stream] += e.Bytes
		}
	}
	return got
}

// pour writes n bytes in a goroutine, and says when the stream has taken them all.
func (l *lab) pour(s *stream, n int) <-chan time.Duration {
	done := make(chan time.Duration, 1)
	go func() {
		l.send(s, n)
		done <- l.net.Since()
	}()
	return done
}

// last is when the last byte has landed, of what one host has sent.
func last(all []Event, from int) (at time.Duration) {
	for _, e := range all {
		if e.From == from {
			at = max(at, e.At)
		}
	}
	return at
}

// However many flows leave a host, to whomever, each has its share of the uplink: at any
// time no two differ by more than the packet that is under way.
func TestFairShares(t *testing.T) {
	const rate, each = 1e6, 30 * PacketSize
	for _, flows := range []int{2, 3, 8} {
		inLab(t, fmt.Sprint(flows), Config{Hosts: flows + 1, Port: Port{Up: rate, Queue: PacketSize}}, func(l *lab) {
			for i := range flows {
				l.pour(l.stream(0, i+1), each)
			}
			l.after(100 * time.Second)
			whole := wireTime(each+30*Header, rate) * time.Duration(flows)
			for _, at := range []time.Duration{whole / 4, whole / 2, whole * 3 / 4} {
				least, most := math.MaxInt, 0
				to := make(map[int]int)
				for _, e := range l.landed {
					if e.At <= at {
						to[e.To] += e.Bytes
					}
				}
				for i := range flows {
					least, most = min(least, to[i+1]), max(most, to[i+1])
				}
				if most-least > PacketSize || least == 0 {
					l.Errorf("after %v of %v the flows have carried from %d to %d bytes", at, whole, least, most)
				}
			}
			l.took("all of them", last(l.landed, 0), whole)
		})
	}
}

// A flow that has said all it had to say leaves the uplink to the others.
func TestShareOfTheShort(t *testing.T) {
	const rate = 1e6
	inLab(t, "", Config{Port: Port{Up: rate, Queue: PacketSize}}, func(l *lab) {
		short := l.stream(0, 1)
		l.pour(l.near, 20*PacketSize)
		l.pour(short, 5*PacketSize)
		l.after(time.Minute)
		alone := wireTime(PacketSize+Header, rate)
		of := l.landedOf(0, 10*alone+settling)
		if len(of) != 2 {
			l.Fatalf("%d flows have landed anything", len(of))
		}
		for name, got := range of {
			if got != 5*PacketSize {
				l.Errorf("flow %x: %d bytes by the time at which the short one has half of what landed", name, got)
			}
		}
		l.took("both", last(l.landed, 0), 25*alone)
	})
}

// The two directions of a way, of an up- and a downlink, do not share: what goes out is not
// in the way of what comes in.
func TestDirectionsAreApart(t *testing.T) {
	const n = 10 * PacketSize
	inLab(t, "", Config{Port: Port{Up: 1e6, Down: 1e6}, Link: Link{Latency: time.Millisecond, Rate: 1e6}}, func(l *lab) {
		back := l.stream(1, 0)
		l.pour(l.near, n)
		l.pour(back, n)
		all := l.after(time.Minute)
		for from := range 2 {
			l.took(fmt.Sprint("what host ", from, " sends"), last(all, from), time.Millisecond+wireTime(n+10*Header, 1e6))
		}
	})
}

// All flows between two hosts share the way between them, and those to a third host have
// another.
func TestWayIsShared(t *testing.T) {
	const rate, n = 1e6, 8 * PacketSize
	inLab(t, "", Config{Hosts: 3, Link: Link{Rate: rate}}, func(l *lab) {
		l.pour(l.near, n)
		l.pour(l.stream(0, 1), n)
		l.pour(l.stream(0, 2), n)
		all := l.after(time.Minute)
		ends := map[int]time.Duration{}
		for _, e := range all {
			ends[e.To] = max(ends[e.To], e.At)
		}
		l.took("two flows of one way", ends[1], wireTime(2*(n+8*Header), rate))
		l.took("one of another", ends[2], wireTime(n+8*Header, rate))
	})
}

// Many that send to one get its downlink in equal shares, whenever they began.
func TestIncast(t *testing.T) {
	const rate, senders, each = 1e6, 7, 6 * PacketSize
	inLab(t, "", Config{Hosts: senders + 1, Port: Port{Up: rate, Down: rate}}, func(l *lab) {
		for i := range senders {
			l.pour(l.stream(i+1, 0), each)
		}
		all := l.after(time.Minute)
		got, seen := make(map[int]int), 0
		for _, e := range all {
			got[e.From] += e.Bytes
			if seen += e.Bytes; seen == senders*each/2 {
				for from, n := range got {
					if n < each/2-PacketSize || n > each/2+PacketSize {
						l.Errorf("of host %d half way: %d bytes of %d", from, n, each)
					}
				}
			}
		}
		first := wireTime(PacketSize+Header, rate) // that of the first packets' uplinks, through which bits flow
		took := last(all, 1)
		for i := range senders {
			took = max(took, last(all, i+1))
		}
		if whole := wireTime(senders*(each+6*Header), rate); took < whole || took > whole+first+settling {
			l.Errorf("all took %v, want %v", took, whole)
		}
	})
}

// A stream carries a window in a round trip at most, whatever the rates.
func TestWindowBoundsTheRate(t *testing.T) {
	const window, latency, n = 4 * PacketSize, 50 * time.Millisecond, 40 * PacketSize
	inLab(t, "", Config{Window: window, Link: Link{Latency: latency}}, func(l *lab) {
		go func() {
			_, err := readAll(l.near.peer, PacketSize)
			if err != nil {
				l.Error(err)
			}
		}()
		l.send(l.near, n)
		if err := l.near.CloseWrite(); err != nil {
			l.Error(err)
		}
		took := last(l.after(time.Minute), 0)
		const trips = n/window - 1 // and the last window's way
		if want := trips*2*latency + latency; took < want || took > want+trips*2*settling {
			l.Errorf("%d bytes took %v, want %v", n, took, want)
		}
	})
}

// What is lost on one way holds up nobody on another, and on its own way those behind it.
func TestLossHoldsUpItsWay(t *testing.T) {
	const latency = 10 * time.Millisecond
	inLab(t, "", Config{Hosts: 3, Link: Link{Latency: latency}}, func(l *lab) {
		l.net.SetLink(0, 1, Link{Latency: latency, Loss: 1})
		l.send(l.near, 1)
		time.Sleep(time.Millisecond)
		l.net.SetLink(0, 1, Link{Latency: latency})
		l.send(l.near, 2)
		sent := l.send(l.stream(0, 2), 3)
		all := l.after(time.Minute)
		if len(all) != 3 || all[0].Bytes != 3 || all[1].Bytes != 1 || all[2].Bytes != 2 {
			l.Fatalf("landed: %v", all)
		}
		l.took("on another way", all[0].At-sent, latency)
		late := latency + maxResends*2*latency
		l.took("what was lost every time", all[1].At-(sent-time.Millisecond), late)
		if all[2].At-all[1].At > settling {
			l.Errorf("the one behind it lands %v later", all[2].At-all[1].At)
		}
	})
}

// Rates may change while flows are under way: what has left goes on as it did, and the
// rest takes the time of the new rate.
func TestShapeUnderWay(t *testing.T) {
	const slow, fast, n = 1e5, 1e6, 20 * PacketSize
	inLab(t, "", Config{Port: Port{Up: slow, Queue: 1}}, func(l *lab) {
		l.pour(l.near, n)
		one := wireTime(PacketSize+Header, slow)
		before := l.after(5*one + settling)
		if len(before) != 5 {
			l.Fatalf("%d packets in the time of 5", len(before))
		}
		l.net.Shape(0, Port{Up: fast, Queue: 1})
		all := l.after(time.Minute)
		// The sixth was on its way, at the old rate.
		want := 6*one + 14*wireTime(PacketSize+Header, fast)
		l.took("all", last(all, 0), want)
	})
}
