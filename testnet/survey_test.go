package testnet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// A plan is a modelled network: how far two ranks are, and what each port carries.
type plan struct {
	name  string
	nodes int
	way   func(a, b int) time.Duration
	port  float64 // bytes per second
}

// apart is a network of sites, of which rank r is in r%sites.
func apart(name string, nodes, sites int, port float64) plan {
	return plan{name, nodes, func(a, b int) time.Duration {
		if a%sites == b%sites {
			return 100 * time.Microsecond
		}
		return 20 * time.Millisecond
	}, port}
}

var plans = []plan{
	apart("a LAN", 4, 1, 125e6),
	apart("a WAN", 4, 4, 25e6),
	apart("a WAN of 5", 5, 5, 25e6),
	apart("two sites", 8, 2, 25e6),
}

// start forms a world on the network, whose links it has surveyed.
func (p plan) start(t *testing.T, c mesh.Config) *testnet.Net {
	net := testnet.New(t, testnet.Config{Nodes: p.nodes, Network: testnet.Model, Port: simlink.Port{Up: p.port, Down: p.port}, Mesh: c})
	for a := range p.nodes {
		for b := range a {
			if err := net.SetLink(a, b, simlink.Link{Latency: p.way(a, b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	next(t, net, 0) // the first has known other links
	return net
}

// next ends the world of a node, and forms the next one.
func next(t *testing.T, net *testnet.Net, node int) {
	t.Helper()
	net.World(node).End(mesh.ErrGrow)
	reform(t, net)
}

// reform forms the next world as soon as all that live have heard of the end of theirs.
func reform(t *testing.T, net *testnet.Net) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range net.Size() {
		if net.Dead(i) {
			continue
		}
		select {
		case <-net.World(i).Context().Done():
		case <-ctx.Done():
			t.Fatalf("node %d has not heard of the end", i)
		}
	}
	if err := net.Form(ctx); err != nil {
		t.Fatal(err)
	}
}

// timed is how long an all-reduce takes by groups of their own, whose lanes are open.
func timed(t *testing.T, net *testnet.Net, bytes int, c ops.Config) (took time.Duration) {
	groups := make([]*ops.Group, net.Size())
	for r := range groups {
		groups[r] = ops.NewGroup(net.World(r), c)
	}
	for range 2 {
		time.Sleep(200 * time.Millisecond) // the links rest
		start := time.Now()
		err := net.Run(func(g *ops.Group) error {
			return groups[g.Rank()].AllReduce(t.Context(), tensor.Of(make([]float32, bytes/4)), tensor.Sum).Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
	return took
}

// Without a word from anyone, what a group chooses is as fast as the best that it could,
// or nearly.
func TestChoosesWell(t *testing.T) {
	for i, p := range plans {
		if simlink.Raced && i != 1 {
			continue // a tenth of the speed
		}
		synctest.Test(t, func(t *testing.T) {
			net := p.start(t, mesh.Config{})
			id := uint32(1)
			for _, bytes := range []int{1 << 10, 256 << 10, 4 << 20} {
				chosen := timed(t, net, bytes, ops.Config{ID: id})
				best, by, seen := time.Hour, "", map[string]bool{}
				for _, c := range ops.Candidates(ops.KindAllReduce, p.nodes, 0, int64(bytes), net.Group(0).Links()) {
					name := c.Schedule.Algorithm()
					if c.Named || seen[name] || len(seen) == 5 { // the others are far off
						continue
					}
					seen[name] = true
					id++
					if d := timed(t, net, bytes, ops.Config{ID: id, Algorithm: "all_reduce=" + name}); d < best {
						best, by = d, name
					}
				}
				id++
				t.Logf("%s, %d bytes: %v, and %v by %s", p.name, bytes, chosen, best, by)
				if chosen > best+best/10 {
					t.Errorf("%s, %d bytes: %v, and %v by %s", p.name, bytes, chosen, best, by)
				}
			}
		})
	}
}

// A survey tells near from far, and about how fast the far links are, on every rank the
// same; and that of the next world, of other links and fewer ranks, goes by those.
func TestSurveyOfEachWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := apart("two sites", 6, 2, 25e6)
		net := p.start(t, mesh.Config{Min: 5})
		check := func(from, to int, want time.Duration, least, most float64) {
			t.Helper()
			l, all := net.Group(0).Links(), net.Group(4).Links()
			a, b := net.World(from).Rank(), net.World(to).Rank()
			if d := l.Latency(a, b); d < want*7/8 || d > want*9/8 || d != all.Latency(a, b) {
				t.Errorf("%d→%d: %v, and %v to others, want %v", from, to, d, all.Latency(a, b), want)
			}
			if r := l.Rate(a, b); r < least || r > most || r != all.Rate(a, b) {
				t.Errorf("%d→%d: %.0f, and %.0f to others, want %.0f to %.0f", from, to, r, all.Rate(a, b), least, most)
			}
		}
		check(0, 2, 100*time.Microsecond, 20e6, 30e6)
		check(0, 1, 20*time.Millisecond, 12e6, 30e6)
		for a := range p.nodes {
			for b := range a {
				if err := net.SetLink(a, b, simlink.Link{Latency: 5 * time.Millisecond, Rate: 2e6}); err != nil {
					t.Fatal(err)
				}
			}
		}
		net.Kill(5)
		reform(t, net)
		check(0, 2, 5*time.Millisecond, 1.2e6, 2.5e6)
		check(3, 1, 5*time.Millisecond, 1.2e6, 2.5e6)
	})
}

// All ranks choose alike, whatever they do at first and at once: else a call would fail.
func TestChooseAlikeFromTheFirst(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			net := apart("two sites", 5, 2, 25e6).start(t, mesh.Config{})
			err := net.Run(func(g *ops.Group) error {
				rng, late := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, uint64(2+g.Rank())))
				var works []*ops.Work
				for range 12 {
					time.Sleep(time.Duration(late.IntN(30)) * time.Millisecond) // each rank in its own time
					x := tensor.Of(make([]float32, 1<<rng.IntN(18)))
					switch rng.IntN(4) {
					case 0:
						works = append(works, g.AllReduce(t.Context(), x, tensor.Max))
					case 1:
						works = append(works, g.Broadcast(t.Context(), x, rng.IntN(5)))
					case 2:
						works = append(works, g.Barrier(t.Context()))
					default:
						half, err := g.SplitBy(t.Context(), g.Rank()%2, 0)
						if err != nil {
							return err
						}
						works = append(works, half.AllReduce(t.Context(), x, tensor.Sum))
					}
				}
				var err error
				for _, w := range works {
					err = errors.Join(err, w.Wait())
				}
				return err
			})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}
