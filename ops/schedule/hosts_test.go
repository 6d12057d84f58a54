package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostsOf shares out ranks: the first host has the first of them, or with a stride ranks
// are dealt to the hosts in turn.
func hostsOf(dealt bool, sizes ...int) (h Hosts) {
	left := slices.Clone(sizes)
	h = make(Hosts, len(sizes))
	for r, i := 0, 0; slices.Max(left) > 0; i = (i + 1) % len(h) {
		for left[i] > 0 {
			h[i] = append(h[i], r)
			r, left[i] = r+1, left[i]-1
			if dealt {
				break
			}
		}
	}
	return h
}

// shapes are hosts of equal and unequal sizes, and none that matter.
var shapes = [][]int{
	{1}, {5}, {1, 1}, {2, 2}, {1, 1, 1}, {2, 2, 3}, {3, 2, 2}, {4, 4, 4}, {1, 4}, {8, 3}, {2, 3, 4, 5}, {6, 6}, {1, 2, 1, 7}, {4, 6},
}

// inner are the schedules inside, and acrosses those among hosts.
var inner = map[string]func(int) Schedule{"ring": Ring, "bruck": Bruck, "cascade": Cascade, "direct": Direct}

func both(g func(int) Schedule) func(int) Schedule {
	return func(n int) Schedule { return AllReduce(g(n)) }
}

// TestHostsAllReduce proves every combination, with as many parts as the smallest host has
// ranks, as all hosts share evenly, and others.
func TestHostsAllReduce(t *testing.T) {
	acrosses := []func(int) Schedule{Doubling, both(Ring), both(Bruck), both(Halving), OneShot}
	for _, sizes := range shapes {
		for _, dealt := range []bool{false, true} {
			h := hostsOf(dealt, sizes...)
			for name, inside := range inner {
				for _, across := range acrosses {
					for _, parts := range []int{1, h.Fewest(), h.Balanced(), 5} {
						s := h.AllReduce(parts, inside, across)
						if err := Check(s, AllReduceContract); err != nil {
							t.Errorf("%v, %d parts, %s inside: %v", h, parts, name, err)
						}
						if s.Algorithm() != "two-level" || !s.Aligned() {
							t.Errorf("%s is known as %s", s.Name, s.Algorithm())
						}
					}
				}
			}
		}
	}
}

// TestHostsReduceScatter proves the reduce-scatter, and reversed the all-gather.
func TestHostsReduceScatter(t *testing.T) {
	for _, sizes := range shapes {
		for _, dealt := range []bool{false, true} {
			h := hostsOf(dealt, sizes...)
			for name, inside := range inner {
				for other, across := range inner {
					s := h.ReduceScatter(inside, across)
					if err := Check(s, ReduceScatterContract); err != nil {
						t.Errorf("%v, %s inside, %s across: %v", h, name, other, err)
					}
					if err := Check(s.Reverse(), AllGatherContract); err != nil {
						t.Errorf("%v, %s inside, %s across: %v", h, name, other, err)
					}
				}
			}
		}
	}
}

// TestHostsReduce proves the reduction to every root, and reversed the broadcast.
func TestHostsReduce(t *testing.T) {
	large := func(n, root int) Schedule { return Reduce(Bruck(n), root) }
	for _, sizes := range shapes {
		h := hostsOf(true, sizes...)
		n, _ := h.places()
		for root := range n {
			for _, across := range []func(n, root int) Schedule{BinomialTo, large} {
				for _, parts := range []int{1, h.Fewest(), h.Balanced()} {
					s := h.Reduce(root, parts, Bruck, across)
					if err := Check(s, ReduceContract(root)); err != nil {
						t.Errorf("%v, root %d, %d parts: %v", h, root, parts, err)
					}
					if err := Check(s.Reverse(), BroadcastContract(root)); err != nil {
						t.Errorf("%v, root %d, %d parts: %v", h, root, parts, err)
					}
				}
			}
		}
	}
}

// crossing is how many vectors' worth of bytes leave each host.
func crossing(h Hosts, s Schedule) []float64 {
	_, at := h.places()
	out := make([]float64, len(h))
	for _, round := range s.Rounds {
		for _, m := range round {
			if at[m.From].host != at[m.To].host {
				out[at[m.From].host] += float64(m.N) / float64(s.Chunks)
			}
		}
	}
	return out
}

// TestHostsCross shows what the two levels are for: as much leaves a host as if it were one
// rank, however many it has, and its ranks share it.
func TestHostsCross(t *testing.T) {
	for _, sizes := range shapes {
		h := hostsOf(false, sizes...)
		hosts := float64(len(h))
		for _, parts := range []int{h.Fewest(), h.Balanced()} {
			for i, got := range crossing(h, h.AllReduce(parts, Bruck, both(Ring))) {
				if want := 2 * (hosts - 1) / hosts; got > want+1e-9 || got < want-1e-9 {
					t.Errorf("%v, %d parts: %.3f vectors leave host %d, want %.3f", h, parts, got, i, want)
				}
			}
		}
	}
	h := hostsOf(false, 2, 2, 3)
	sent := make(map[int]int)
	s := h.AllReduce(h.Balanced(), Bruck, both(Ring))
	for _, round := range s.Rounds {
		for _, m := range round {
			if _, at := h.places(); at[m.From].host != at[m.To].host {
				sent[m.From] += m.N
			}
		}
	}
	if h.Balanced() != 6 || h.Fewest() != 2 || sent[0] != sent[1] || sent[4] != sent[5] || sent[5] != sent[6] {
		t.Errorf("%d parts balanced, %d fewest; ranks send across %v", h.Balanced(), h.Fewest(), sent)
	}
	if primes := hostsOf(false, 7, 11, 13); primes.Balanced() != 7 {
		t.Errorf("%d parts among hosts of 7, 11 and 13", primes.Balanced())
	}
}

// far is fast inside hosts and slow between them.
type far struct{ host []int }

func (f far) near(a, b int) bool { return f.host[a] == f.host[b] }

func (f far) Latency(a, b int) time.Duration {
	if f.near(a, b) {
		return 5 * time.Microsecond
	}
	return 200 * time.Microsecond
}

func (f far) Rate(a, b int) float64 {
	if f.near(a, b) {
		return 10e9
	}
	return 100e6
}

// TestHostsPrice has the two levels cost less than what knows of no hosts, for many bytes.
func TestHostsPrice(t *testing.T) {
	for _, sizes := range [][]int{{2, 2}, {4, 4, 4}, {2, 2, 3}, {3, 4}} {
		h := hostsOf(false, sizes...)
		n, at := h.places()
		links := far{make([]int, n)}
		for r := range n {
			links.host[r] = at[r].host
		}
		two := Price(h.AllReduce(h.Balanced(), Bruck, both(Bruck)), 64<<20, links)
		for name, g := range inner {
			if flat := Price(AllReduce(g(n)), 64<<20, links); two >= flat {
				t.Errorf("%v: %v in two levels, %v by %s", h, two, flat, name)
			}
		}
	}
}

func TestHostsMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"nobody":      func() { Hosts{}.ReduceScatter(Ring, Ring) },
		"no host":     func() { Hosts{{0}, {}}.AllReduce(1, Ring, Doubling) },
		"a gap":       func() { Hosts{{0}, {2}}.ReduceScatter(Ring, Ring) },
		"no parts":    func() { Hosts{{0}, {1}}.AllReduce(0, Ring, Doubling) },
		"no scatter":  func() { Hosts{{0, 1}, {2}}.AllReduce(1, Doubling, Doubling) },
		"out of line": func() { Hosts{{0, 1}, {2}}.AllReduce(1, Ring, Pairwise) },
		"no root":     func() { Hosts{{0, 1}}.Reduce(2, 1, Ring, BinomialTo) },
	} {
		if got, ok := panics(f).(string); !ok || !strings.HasPrefix(got, "schedule: ") {
			t.Errorf("%s: panics with %v", name, got)
		}
	}
	if got := fmt.Sprint(hostsOf(true, 2, 3)); got != "[[0 2] [1 3 4]]" {
		t.Errorf("dealt %v", got)
	}
}
