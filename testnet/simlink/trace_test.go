package simlink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A line says what is known, and nothing of what is not.
func TestEventString(t *testing.T) {
	for want, e := range map[string]Event{
		"0s 0→0 kill": {Kind: "kill"},
		"1.000052ms 0→1 data conn 1 stream 3, 512 bytes": {
			At: 1000052, Kind: "data", To: 1, Conn: 1, Stream: 3, Bytes: 512,
		},
		"2s 3→0 dial":                 {At: 2 * time.Second, Kind: "dial", From: 3},
		"1µs 1→0 end conn 2 stream 1": {At: tick, Kind: "end", From: 1, Conn: 2, Stream: 1},
		"1ns 0→1 datagram, 9 bytes":   {At: 1, Kind: "datagram", To: 1, Bytes: 9},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// traced is every event of a network on which f has happened.
func traced(t *testing.T, c Config, f func(l *lab)) (all []Event, counts []Count) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Trace = func(e Event) { all = append(all, e) }
		l := &lab{T: t, net: New(c)}
		f(l)
		time.Sleep(time.Minute)
		synctest.Wait()
		counts = l.net.Counts()
		if err := l.net.Close(); err != nil {
			t.Error(err)
		}
	})
	return all, counts
}

// crossfire has streams between all hosts, in both directions, written to at one instant.
func crossfire(hosts int) func(l *lab) {
	return func(l *lab) {
		for a := range hosts {
			for b := range hosts {
				if a != b {
					s := l.stream(a, b)
					l.send(s, 1000*a+b+PacketSize)
					if err := s.CloseWrite(); err != nil {
						l.Error(err)
					}
				}
			}
		}
	}
}

// Time does not go back, and no two packets land at one host at one instant: so who has
// to do with which of them first is not left to chance.
func TestInstantsAreApart(t *testing.T) {
	const hosts = 6
	all, _ := traced(t, Config{Hosts: hosts, Seed: 1, Link: Link{Latency: time.Millisecond, Jitter: 20 * tick}}, crossfire(hosts))
	if len(all) != hosts*(hosts-1)*3 { // two of data and an end
		t.Errorf("%d packets have landed", len(all))
	}
	var last time.Duration
	landed := make(map[time.Duration]int)
	for _, e := range all {
		if e.At < last {
			t.Fatalf("%v comes after %v", e, last)
		}
		last = e.At
		if to, ok := landed[e.At]; ok {
			t.Errorf("%v lands when one lands at host %d", e, to)
		}
		landed[e.At] = e.To
		if place := e.At % tick; place == 0 || place == flushing {
			t.Errorf("%v lands when packets leave, or nodes begin", e)
		}
	}
}

// One seed gives one trace, whatever the order of the goroutines; another gives another.
func TestTraceFollowsFromTheSeed(t *testing.T) {
	const hosts = 5
	run := func(seed uint64) string {
		c := Config{Hosts: hosts, Seed: seed, Link: Link{Latency: time.Millisecond, Jitter: time.Millisecond, Loss: 0.1}, Port: Port{Up: 1e6}}
		all, _ := traced(t, c, crossfire(hosts))
		var lines strings.Builder
		for _, e := range all {
			fmt.Fprintln(&lines, e)
		}
		return lines.String()
	}
	first := run(1)
	for range 5 {
		if again := run(1); again != first {
			t.Fatalf("once\n%sand then\n%s", first, again)
		}
	}
	if run(2) == first {
		t.Error("another seed gives the same")
	}
}

// Counts are what the trace says that has landed, by direction and in order.
func TestCounts(t *testing.T) {
	const hosts = 4
	all, counts := traced(t, Config{Hosts: hosts + 1}, crossfire(hosts)) // and one that says nothing
	want := make(map[[2]int]Count)
	for _, e := range all {
		c := want[[2]int{e.From, e.To}]
		want[[2]int{e.From, e.To}] = Count{e.From, e.To, c.Packets + 1, c.Bytes + int64(e.Bytes)}
	}
	if len(counts) != len(want) || len(want) != hosts*(hosts-1) {
		t.Errorf("%d directions are counted, %d were used", len(counts), len(want))
	}
	for _, c := range counts {
		if c != want[[2]int{c.From, c.To}] {
			t.Errorf("%+v, want %+v", c, want[[2]int{c.From, c.To}])
		}
	}
	if !slices.IsSortedFunc(counts, func(a, b Count) int { return hosts*(a.From-b.From) + a.To - b.To }) {
		t.Errorf("not in order: %v", counts)
	}
}

// Every fault is in the trace once, when it happened, also one that changes nothing.
func TestFaultsAreTraced(t *testing.T) {
	all, _ := traced(t, Config{Hosts: 3}, func(l *lab) {
		n := l.net
		for _, fault := range []func(){
			func() { n.Cut(0, 1) }, func() { n.Cut(0, 1) }, func() { n.Heal(1, 0) }, func() { n.Freeze(2) }, func() { n.Thaw(2) },
			func() { n.Kill(0) }, func() { n.Restart(0) }, func() { n.SetLink(1, 2, Link{}) }, func() { n.Shape(1, Port{}) },
			func() { n.Split([]int{0}, []int{1, 2}) }, func() { n.Join([]int{0}, []int{1, 2}) },
		} {
			fault()
			time.Sleep(time.Second)
		}
	})
	var got []string
	for _, e := range all {
		got = append(got, e.String())
	}
	want := []string{
		"0s 0→1 cut", "1s 0→1 cut", "2s 1→0 heal", "3s 2→2 freeze", "4s 2→2 thaw", "5s 0→0 kill", "6s 0→0 restart",
		"7s 1→2 link", "8s 1→1 shape", "9s 1→0 cut", "9s 2→0 cut", "10s 1→0 heal", "10s 2→0 heal",
	}
	if !slices.Equal(got, want) {
		t.Errorf("traced\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
