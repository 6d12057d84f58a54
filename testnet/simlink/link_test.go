package simlink

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// settling is by how much more than reckoned a packet may take: a tick to leave and
// one to land, and one for rounding.
const settling = 3 * tick

// A lab is two hosts with a stream from the first to the second, and what has landed.
type lab struct {
	*testing.T
	net    *Network
	near   *stream
	landed []Event // of data only
}

// inLab runs f in a bubble of its own.
func inLab(t *testing.T, name string, c Config, f func(l *lab)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &lab{T: t}
			c.Hosts = max(c.Hosts, 2)
			c.Trace = func(e Event) {
				if e.Kind == "data" || e.Kind == "datagram" {
					l.landed = append(l.landed, e)
				}
			}
			l.net = New(c)
			l.near = l.stream(0, 1)
			f(l)
			if err := l.net.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// stream opens one, on a connection of its own.
func (l *lab) stream(from, to int) *stream {
	a, b := l.net.Host(from), l.net.Host(to)
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	w := l.net.way(a, b)
	w.conns++
	near, _ := newConns(&pair{dialer: from, number: w.conns}, a, b)
	return newStreams(near)
}

// send writes n bytes and returns when that was.
func (l *lab) send(s *stream, n int) time.Duration {
	l.Helper()
	at := l.net.Since()
	if _, err := s.Write(make([]byte, n)); err != nil {
		l.Error(err)
	}
	return at
}

// after sleeps, and returns what has landed by then.
func (l *lab) after(d time.Duration) []Event {
	time.Sleep(d)
	synctest.Wait()
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	return append([]Event(nil), l.landed...)
}

// took fails unless got is want, or up to the settling more.
func (l *lab) took(what string, got, want time.Duration) {
	l.Helper()
	if got < want-time.Nanosecond || got > want+settling {
		l.Errorf("%s took %v, want %v", what, got, want)
	}
}

// A packet takes the latency of its link, and no more where nothing bounds the rate.
func TestLatency(t *testing.T) {
	for _, latency := range []time.Duration{0, 130 * time.Microsecond, 10 * time.Millisecond, 3 * time.Second} {
		inLab(t, latency.String(), Config{Link: Link{Latency: latency}}, func(l *lab) {
			for range 3 {
				sent := l.send(l.near, 1000)
				all := l.after(latency + time.Millisecond)
				l.took("a packet", all[len(all)-1].At-sent, latency)
			}
		})
	}
}

// Bytes take the time of the slowest of uplink, way and downlink, with a Header for
// each packet; the three work at once, so that their times do not add up.
func TestRates(t *testing.T) {
	const packets, latency = 5, 10 * time.Millisecond
	for _, c := range []struct {
		port Port
		way  float64
		want float64 // bytes per second
	}{
		{Port{Up: 1e6}, 0, 1e6}, {Port{Down: 2e6}, 0, 2e6}, {Port{}, 5e5, 5e5},
		{Port{Up: 1e6, Down: 1e6}, 1e6, 1e6}, {Port{Up: 3e6, Down: 1e6}, 2e6, 1e6},
		{Port{Up: 1e6, Down: 8e6}, 4e6, 1e6}, {Port{Up: 4e6, Down: 4e6}, 1e6, 1e6},
	} {
		inLab(t, fmt.Sprint(c.port, c.way), Config{Port: c.port, Link: Link{Latency: latency, Rate: c.way}}, func(l *lab) {
			const bytes = packets * PacketSize
			sent := l.send(l.near, bytes)
			all := l.after(time.Second)
			if len(all) != packets {
				l.Fatalf("%d packets have landed: %v", len(all), all)
			}
			wire := float64(bytes+packets*Header) / c.want
			l.took("the last byte", all[packets-1].At-sent, latency+time.Duration(wire*1e9))
		})
	}
}

// Hosts that send to one share its downlink, and each has its uplink to itself.
func TestSharedDownlink(t *testing.T) {
	inLab(t, "", Config{Hosts: 3, Port: Port{Up: 1e6, Down: 1e6}}, func(l *lab) {
		other := l.stream(2, 1)
		sent := l.send(l.near, 2*PacketSize)
		l.send(other, 2*PacketSize)
		all := l.after(time.Second)
		l.took("both", all[len(all)-1].At-sent, wireTime(4*(PacketSize+Header), 1e6))
		got := map[int]int{}
		for _, e := range all {
			got[e.From] += e.Bytes
		}
		if got[0] != 2*PacketSize || got[2] != 2*PacketSize {
			l.Errorf("landed of each: %v", got)
		}
	})
}

// Packets keep their order under jitter and loss, none is missing, and jitter alone
// makes none later than it says.
func TestOrder(t *testing.T) {
	const many, latency, jitter = 200, 10 * time.Millisecond, 8 * time.Millisecond
	for _, loss := range []float64{0, 0.2} {
		inLab(t, fmt.Sprint(loss), Config{Seed: 5, Link: Link{Latency: latency, Jitter: jitter, Loss: loss}}, func(l *lab) {
			var sent []time.Duration
			for i := range many {
				sent = append(sent, l.send(l.near, i+1))
				time.Sleep(time.Millisecond)
			}
			all := l.after(5 * time.Second)
			if len(all) != many {
				l.Fatalf("%d of %d have landed", len(all), many)
			}
			resent := false
			for i, e := range all {
				took := e.At - sent[i]
				resent = resent || took > latency+jitter+settling
				if e.Bytes != i+1 || took < latency {
					l.Fatalf("packet %d: %v after %v", i, e, took)
				}
			}
			if resent != (loss > 0) {
				l.Errorf("any later than latency and jitter: %v", resent)
			}
		})
	}
}

// No more than Queue and a packet waits for the uplink, and a writer waits with the
// rest, beyond what its stream's buffer takes.
func TestQueue(t *testing.T) {
	for _, queue := range []int{0, 1000, 40_000} {
		inLab(t, fmt.Sprint(queue), Config{Port: Port{Up: 1e6, Queue: queue}}, func(l *lab) {
			if queue == 0 {
				queue = DefaultQueue
			}
			const bytes = 20 * PacketSize
			h, worst := l.net.Host(0), time.Duration(0)
			done := make(chan time.Duration, 1)
			start := l.net.Since()
			go func() { l.send(l.near, bytes); done <- l.net.Since() - start }()
			for range 400 {
				time.Sleep(time.Millisecond)
				l.net.mu.Lock()
				worst = max(worst, h.up.free-l.net.now())
				l.net.mu.Unlock()
			}
			most := wireTime(queue+PacketSize+Header, 1e6)
			if worst > most || worst < wireTime(queue, 1e6)-PacketSize*time.Microsecond {
				l.Errorf("up to %v wait for the uplink, want about %v", worst, wireTime(queue, 1e6))
			}
			wrote, passed := <-done, wireTime(bytes-sendBuffer-queue-2*PacketSize, 1e6)
			if wrote < passed || wrote > wireTime(bytes+20*Header, 1e6) {
				l.Errorf("the write took %v, want %v or a little more", wrote, passed)
			}
		})
	}
}

// Streams of a host take turns: a short message does not wait for a long one.
func TestTurns(t *testing.T) {
	inLab(t, "", Config{Port: Port{Up: 1e6, Queue: 1}}, func(l *lab) {
		short := l.stream(0, 1)
		l.send(l.near, 4*PacketSize)
		time.Sleep(time.Millisecond)
		sent := l.send(short, 10)
		all := l.after(time.Second)
		for i, e := range all {
			if e.Bytes == 10 {
				if i != 1 {
					l.Errorf("the short message landed %v after it was sent, as number %d of %d", e.At-sent, i, len(all))
				}
				return
			}
		}
		l.Errorf("the short message is not among %v", all)
	})
}

// A stream carries its window ahead of its reader, and goes on as that reads.
func TestWindow(t *testing.T) {
	const window = 2 * PacketSize
	inLab(t, "", Config{Window: window}, func(l *lab) {
		l.send(l.near, 3*PacketSize)
		total := func() (bytes int) {
			for _, e := range l.after(time.Second) {
				bytes += e.Bytes
			}
			return bytes
		}
		if got := total(); got != window {
			l.Errorf("%d bytes landed ahead of the reader, want %d", got, window)
		}
		for read := 0; read < PacketSize; {
			n, err := l.near.peer.Read(make([]byte, PacketSize))
			if err != nil {
				l.Fatal(err)
			}
			read += n
		}
		if got := total(); got != 3*PacketSize {
			l.Errorf("%d bytes have landed, want %d", got, 3*PacketSize)
		}
	})
}
