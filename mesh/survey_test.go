package mesh

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// What is written of readings is read back.
func TestReadings(t *testing.T) {
	row := []reading{{0, 0}, {3, time.Microsecond}, {255, time.Hour}}
	got, err := takeReadings(&scanner{p: appendReadings(nil, row)}, 256)
	if err != nil || !slices.Equal(got, row) {
		t.Errorf("%v, %v", got, err)
	}
	for way, want := range map[time.Duration]time.Duration{0: 1, 1: 1, 1000: 1, 1001: 2, 294_903: 295} {
		if got := asTold(way); got != want*time.Microsecond {
			t.Errorf("%v away is told as %v, want %d µs", way, got, want)
		}
		// Whoever has measured a link draws the same chart as those that are told of it.
		mine := []reading{{1, asTold(way)}}
		if got, err := takeReadings(&scanner{p: appendReadings(nil, mine)}, 2); err != nil || !slices.Equal(got, mine) {
			t.Errorf("%v is kept as %v and told as %v, %v", way, mine, got, err)
		}
	}
	for name, p := range map[string][]byte{
		"rank": appendReadings(nil, []reading{{9, 0}}), "short": {0, 0, 0}, "many": make([]byte, 6*(maxReadings+1)),
	} {
		if row, err := takeReadings(&scanner{p: p}, 9); err == nil {
			t.Errorf("%s: %v", name, row)
		}
	}
}

// A burst's clock goes by what a connection does once it is up to speed.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			for i := range 8 {
				time.Sleep(time.Duration(max(4-i, 1)) * 10 * time.Millisecond)
				if _, err := w.Write(make([]byte, burstPiece)); err != nil {
					return
				}
			}
			w.Close()
		}()
		if got, err := clock(r); err != nil || got < 100*burstPiece || got > 101*burstPiece {
			t.Errorf("%d bytes per second, %v", got, err)
		}
	})
	for n, want := range map[int]error{0: nil, burstPiece: nil, burstPiece + 1: io.ErrUnexpectedEOF, farBurst + 1: node.ErrViolation} {
		if got, err := clock(bytes.NewReader(make([]byte, n))); got != 0 || !errors.Is(err, want) {
			t.Errorf("%d bytes: %d, %v", n, got, err)
		}
	}
}

// All ranks get the same chart, in worlds in which all are linked and in larger ones,
// and a survey ends with its world.
func TestSurvey(t *testing.T) {
	for _, n := range []int{2, 3} {
		p := form(t, n, Config{})
		each(t, n, func(rank int) error {
			l, err := p.worlds[rank].Survey(t.Context())
			if err != nil {
				return err
			}
			for a := range n {
				if l.Host(a) != 1 || l.Latency(a, (a+1)%n) != hostLatency || l.Rate(a, (a+1)%n) != hostRate {
					t.Errorf("rank %d: %d is elsewhere", rank, a)
				}
			}
			return nil
		})
	}
	r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
	w := newWorld(nil, Config{}, &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}, "a")
	cause := errors.New("enough")
	w.cancel(cause)
	if l, err := w.Survey(t.Context()); !errors.Is(err, cause) {
		t.Errorf("%v, %v", l, err)
	}
}

// Nobody gets away with rates and echoes that make no sense.
func TestSurveyFrames(t *testing.T) {
	r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
	w := newWorld(nil, Config{}, &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}, "a")
	w.start = w.start.Add(-time.Second)
	l := w.links[1]
	for name, c := range map[string]struct {
		kind uint8
		p    []byte
		ok   bool
	}{
		"rates":        {frameRates, append([]byte{1, 0, 0, 0}, make([]byte, 16)...), true},
		"rates twice":  {frameRates, append([]byte{1, 0, 0, 0}, make([]byte, 16)...), true},
		"rates' rank":  {frameRates, append([]byte{2, 0, 0, 0}, make([]byte, 16)...), false},
		"a great rate": {frameRates, append([]byte{1, 0, 0, 0}, bytes.Repeat([]byte{255}, 16)...), false},
		"short rates":  {frameRates, []byte{1, 0, 0, 0}, false},
		"ask":          {frameEcho, make([]byte, 9), true},
		"answer":       {frameEcho, append([]byte{echoAnswer}, make([]byte, 8)...), true},
		"from ahead":   {frameEcho, append([]byte{echoAnswer}, bytes.Repeat([]byte{127}, 8)...), true},
		"echo's kind":  {frameEcho, append([]byte{2}, make([]byte, 8)...), false},
		"short echo":   {frameEcho, []byte{0}, false},
	} {
		if err := l.frame(c.kind, c.p); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := <-l.echo; got < time.Second || got > time.Minute || len(l.echo) > 0 {
		t.Errorf("an echo of %v", got)
	}
	for range maxQueued + 1 { // asked for more than a queue holds
		if err := l.frame(frameEcho, make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
	}
}
