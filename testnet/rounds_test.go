package testnet_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

var everyRound = flag.Bool("rounds", false, "kill every rank at every round of every schedule, for minutes")

// A fuse is a rank's world that goes off when a message of a round, or of a later
// one, is sent or comes.
type fuse struct {
	*mesh.World
	round uint32
	once  sync.Once
	bang  func()
}

// roundAt is where a tag has its round: see mesh/SPEC.md.
const roundAt = 28

func (f *fuse) see(tag ops.Tag) {
	if binary.LittleEndian.Uint32(tag[roundAt:]) >= f.round {
		f.once.Do(f.bang)
	}
}

func (f *fuse) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	f.see(tag)
	return f.World.Send(ctx, to, lane, tag, n, parts)
}

func (f *fuse) Recv(ctx context.Context, from int, lane uint64, accept func(ops.Tag, int64) error, land func([]byte) error) error {
	return f.World.Recv(ctx, from, lane, func(tag ops.Tag, n int64) error {
		f.see(tag)
		return accept(tag, n)
	}, land)
}

// A rank dies at a round of a schedule: every survivor ends with its name, none
// hangs, and they are in the next world within seconds.
func TestKillAtEveryRound(t *testing.T) {
	most, kinds := 3, []ops.Kind{ops.KindAllReduce}
	if *everyRound {
		most, kinds = 6, []ops.Kind{ops.KindAllReduce, ops.KindReduceScatter, ops.KindAllGather, ops.KindBroadcast, ops.KindReduce}
	}
	for n := 2; n <= most; n++ {
		for _, kind := range kinds {
			for i, c := range ops.Candidates(kind, n, 0, 1<<20, schedule.Uniform{Delay: time.Millisecond, BytesPerSecond: 1e9}) {
				if !*everyRound && i%4 > 0 {
					continue
				}
				for victim := range n {
					for round := range c.Schedule.Rounds {
						name := fmt.Sprintf("%d/%s/rank %d/round %d", n, c.Schedule.Name, victim, round)
						t.Run(name, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { killAt(t, n, c.Schedule, victim, round) })
						})
					}
				}
			}
		}
	}
}

// folds is the reduction that a schedule wants.
func folds(s schedule.Schedule) tensor.Op {
	for _, round := range s.Rounds {
		for _, m := range round {
			if m.Reduce {
				return tensor.Sum
			}
		}
	}
	return tensor.Op{}
}

func killAt(t *testing.T, n int, s schedule.Schedule, victim, round int) {
	c := testnet.Config{Nodes: n, Network: testnet.Model, Link: simlink.Link{Latency: time.Millisecond}, Mesh: mesh.Config{Min: 1}}
	if n == 2 {
		c.Mesh.Quorum = mesh.Any // or rank 1 could not go on alone
	}
	net := testnet.New(t, c)
	var killed sync.WaitGroup
	kill := func() {
		killed.Go(func() {
			if err := net.Kill(victim); err != nil {
				t.Error(err)
			}
		})
	}
	f := &fuse{World: net.World(victim), round: uint32(round), bang: kill}
	err := net.Run(func(g *ops.Group) error {
		if g.Rank() == victim {
			g = ops.NewGroup(f, ops.Config{})
		}
		x := make([]float32, 1<<10)
		err := g.Run(t.Context(), s, tensor.Of(x), folds(s)).Wait()
		f.once.Do(kill) // a rank that has no part in the round dies after it
		if g.Rank() == victim {
			return nil
		}
		<-net.World(g.Rank()).Context().Done() // the others may have been done before
		var e *mesh.EndedError
		if cause := context.Cause(net.World(g.Rank()).Context()); !errors.As(cause, &e) || e.Rank != victim || !errors.Is(e, mesh.ErrLost) {
			return fmt.Errorf("rank %d: %w", g.Rank(), cause)
		}
		if err != nil && !errors.As(err, &e) {
			return fmt.Errorf("rank %d: %w", g.Rank(), err)
		}
		return nil
	})
	killed.Wait()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := net.Form(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the next world took %s", took)
	}
	for i := range n {
		if w := net.World(i); i != victim && (w.Epoch() < 2 || w.Size() != n-1) {
			t.Errorf("node %d: rank %d of %d in world %d", i, w.Rank(), w.Size(), w.Epoch())
		}
	}
	if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
		t.Error(err)
	}
}
