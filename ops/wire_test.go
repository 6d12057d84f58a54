package ops_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A counter is a transport that counts what a rank sends.
type counter struct {
	ops.Transport
	mu       sync.Mutex
	bytes    int64
	messages int
	rounds   map[uint32]bool
}

func (c *counter) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	c.mu.Lock()
	c.bytes += n
	c.messages++
	c.rounds[binary.LittleEndian.Uint32(tag[28:])] = true // see mesh/SPEC.md
	c.mu.Unlock()
	return c.Transport.Send(ctx, to, lane, tag, n, parts)
}

// counted runs an operation and returns what each rank sent.
func counted(t *testing.T, n int, c ops.Config, f func(g *ops.Group) error) []*counter {
	t.Helper()
	counters, groups := make([]*counter, n), make([]*ops.Group, n)
	for r, w := range memnet.New(n) {
		counters[r] = &counter{Transport: w, rounds: make(map[uint32]bool)}
		groups[r] = ops.NewGroup(counters[r], c)
	}
	check(t, each(groups, f))
	return counters
}

// rounds is how many rounds had a message of anyone.
func rounds(cs []*counter) int {
	all := make(map[uint32]bool)
	for _, c := range cs {
		for i := range c.rounds {
			all[i] = true
		}
	}
	return len(all)
}

// The figures of the literature, byte by byte, for counts that ranks do not divide.
func TestWireMeetsTheory(t *testing.T) {
	const elem = 8
	for _, n := range []int{2, 3, 4, 5, 7, 8} {
		const size = 1003
		x := func() tensor.Tensor { return tensor.New(tensor.Float64, size) }
		chunk := func(c int) int64 { c %= n; return int64((c+1)*size/n-c*size/n) * elem }
		lg := 0
		for 1<<lg < n {
			lg++
		}
		ring := counted(t, n, ops.Config{Algorithm: "ring"}, func(g *ops.Group) error { return g.AllReduce(ctx, x(), tensor.Sum).Wait() })
		total := int64(0)
		for r, c := range ring {
			total += c.bytes
			if want := 2*size*elem - chunk(r) - chunk(r+n-1); c.bytes != want || len(c.rounds) != 2*(n-1) {
				t.Errorf("ring of %d: rank %d sent %d bytes in %d rounds, want %d in %d", n, r, c.bytes, len(c.rounds), want, 2*(n-1))
			}
		}
		if want := int64(2 * (n - 1) * size * elem); total != want {
			t.Errorf("ring of %d: %d bytes, want 2(n−1)S, %d", n, total, want)
		}
		for what, f := range map[string]func(g *ops.Group) error{
			"broadcast=binomial":    func(g *ops.Group) error { return g.Broadcast(ctx, x(), n-1).Wait() },
			"reduce=binomial":       func(g *ops.Group) error { return g.Reduce(ctx, x(), tensor.Sum, n-1).Wait() },
			"all_reduce=doubling":   func(g *ops.Group) error { return g.AllReduce(ctx, x(), tensor.Sum).Wait() },
			"gather=binomial":       func(g *ops.Group) error { return g.Gather(ctx, onlyAt(g, 0, n*size), x(), 0).Wait() },
			"barrier=dissemination": func(g *ops.Group) error { return g.Barrier(ctx).Wait() },
		} {
			if got := rounds(counted(t, n, ops.Config{Algorithm: what}, f)); got != lg {
				t.Errorf("%s of %d: %d rounds, want ⌈lg n⌉, %d", what, n, got, lg)
			}
		}
		for r, c := range counted(t, n, ops.Config{}, func(g *ops.Group) error {
			return g.AllToAll(ctx, tensor.New(tensor.Float64, n*size), tensor.New(tensor.Float64, n*size)).Wait()
		}) {
			if want := int64((n - 1) * size * elem); c.bytes != want {
				t.Errorf("all_to_all of %d: rank %d sent %d bytes, want (n−1)/n S, %d", n, r, c.bytes, want)
			}
		}
	}
}

// onlyAt is room for a gather at one rank.
func onlyAt(g *ops.Group, rank, n int) (x tensor.Tensor) {
	if g.Rank() == rank {
		x = tensor.New(tensor.Float64, n)
	}
	return x
}

// What is on the wire is the schedule, rank by rank: its bytes, its rounds, and one
// message for each peer in a round.
func TestWireIsTheSchedule(t *testing.T) {
	const n, size, root = 5, 5*67 + 3, 2
	calls := map[ops.Kind]func(g *ops.Group) *ops.Work{
		ops.KindAllReduce: func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, tensor.New(tensor.Uint8, size), tensor.Max) },
		ops.KindReduce:    func(g *ops.Group) *ops.Work { return g.Reduce(ctx, tensor.New(tensor.Uint8, size), tensor.Max, root) },
		ops.KindBroadcast: func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, tensor.New(tensor.Uint8, size), root) },
		ops.KindReduceScatter: func(g *ops.Group) *ops.Work {
			return g.ReduceScatterList(ctx, list(g, size)[g.Rank()], list(g, size), tensor.Max)
		},
		ops.KindAllGather: func(g *ops.Group) *ops.Work { return g.AllGatherList(ctx, list(g, size), list(g, size)[g.Rank()]) },
	}
	for kind, call := range calls {
		seen := make(map[string]bool)
		for _, candidate := range ops.Candidates(kind, n, root, size, ops.DefaultLinks) {
			s := candidate.Schedule
			if seen[s.Algorithm()] {
				continue // price takes the first of a name for so few bytes
			}
			seen[s.Algorithm()] = true
			got := counted(t, n, ops.Config{Algorithm: kind.String() + "=" + s.Algorithm()}, func(g *ops.Group) error { return call(g).Wait() })
			want := sends(s, size)
			for r, c := range got {
				if c.bytes != want[r].bytes || c.messages != want[r].messages || len(c.rounds) != len(want[r].rounds) {
					t.Errorf("%v by %s: rank %d sent %d bytes, %d messages, %d rounds; want %d, %d, %d", kind, s.Name, r,
						c.bytes, c.messages, len(c.rounds), want[r].bytes, want[r].messages, len(want[r].rounds))
				}
			}
		}
	}
}

// list is a list of bytes, one tensor a rank, as equal as they can be.
func list(g *ops.Group, size int) []tensor.Tensor {
	all := make([]tensor.Tensor, g.Size())
	for r := range all {
		all[r] = tensor.New(tensor.Uint8, (r+1)*size/g.Size()-r*size/g.Size())
	}
	return all
}

// sends is what each rank has to send of a vector of bytes.
func sends(s schedule.Schedule, size int) []*counter {
	all := make([]*counter, s.Ranks)
	for r := range all {
		all[r] = &counter{rounds: make(map[uint32]bool)}
	}
	for i, round := range s.Rounds {
		ways := make(map[string]bool)
		for _, m := range round {
			from := all[m.From]
			from.bytes += int64((m.Src+m.N)*size/s.Chunks - m.Src*size/s.Chunks)
			from.rounds[uint32(i)] = true
			if way := fmt.Sprint(m.From, m.To); !ways[way] {
				ways[way] = true
				from.messages++
			}
		}
	}
	return all
}
