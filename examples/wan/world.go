package main

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
	"peermesh/trainer/local"
	"peermesh/trainer/mnist"
)

// A counted world counts the bytes of the messages that its rank sends.
type counted struct {
	*mesh.World
	sent atomic.Int64
}

func (c *counted) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	c.sent.Add(n + int64(len(tag)))
	return c.World.Send(ctx, to, lane, tag, n, parts)
}

// A venue is where ranks are: it calls f for each of this process's, in one world.
type venue func(ctx context.Context, f func(w *mesh.World) error) error

// here is a venue of nodes of this process, in a new world for each contender.
func here(o options) venue {
	return func(ctx context.Context, f func(w *mesh.World) error) error {
		config := testnet.Config{Nodes: o.ranks}
		if o.rate > 0 || o.delay > 0 {
			config.Network = testnet.Model
			config.Link = simlink.Link{Latency: o.delay}
			config.Port = simlink.Port{Up: bytesPerSecond(o.rate), Down: bytesPerSecond(o.rate)}
		}
		net, err := testnet.Start(ctx, config)
		if err != nil {
			return err
		}
		defer net.Close()
		return net.Run(func(g *ops.Group) error { return f(net.World(g.Rank())) })
	}
}

// joined is the venue of a process that is one rank, as its environment says (mesh.FromEnv).
// All contenders have one world, which leave ends.
func joined(ctx context.Context) (at venue, rank, size int, leave func() error, err error) {
	nc, mc, err := mesh.FromEnv()
	if err != nil {
		return nil, 0, 0, nil, err
	}
	n, err := node.Start(ctx, nc)
	if err != nil {
		return nil, 0, 0, nil, err
	}
	m, err := mesh.Join(ctx, n, mc)
	if err != nil {
		return nil, 0, 0, nil, errors.Join(err, n.Close())
	}
	leave = func() error { return errors.Join(m.Leave(context.WithoutCancel(ctx)), n.Close()) }
	w, err := m.World(ctx)
	if err != nil {
		return nil, 0, 0, nil, errors.Join(err, leave())
	}
	at = func(_ context.Context, f func(w *mesh.World) error) error {
		err := f(w)
		if err != nil {
			w.End(err)
		}
		return err
	}
	return at, w.Rank(), w.Size(), leave, nil
}

// lanes are how many parts of a chunk travel side by side, for then one is decoded, added up
// and encoded while others fill the link. A coded chunk of the mlp's largest layer is a
// quarter of a megabyte, of which a group by itself would make one.
const lanes = 4

// compete has one contender, the id-th, train at a venue.
func compete(ctx context.Context, at venue, id uint32, data *mnist.Data, c contender, o options) (outcome, error) {
	var out outcome
	err := at(ctx, func(world *mesh.World) error {
		w := &counted{World: world}
		result, err := train(ctx, ops.NewGroup(w, ops.Config{ID: id, Lanes: lanes}), w.sent.Load, data, c, o)
		if w.Rank() == 0 {
			out = result
		}
		return err
	})
	return out, err
}

// bytesPerSecond are those of so many Mbit/s.
func bytesPerSecond(megabits float64) float64 { return megabits * 1e6 / 8 }

// onLink is the arithmetic of what a run's communication takes at a price: its bytes, and
// the latency of a ring's rounds in each synchronisation. Nothing of it is measured.
func onLink(out outcome, c contender, o options) time.Duration {
	rounds := 2 * (o.ranks - 1)
	if _, single := c.method.(local.PairAveraging); single {
		rounds = 1
	}
	syncs := out.steps / max(c.every, 1)
	wire := time.Duration(float64(out.sent) / bytesPerSecond(o.price) * float64(time.Second))
	return wire + time.Duration(syncs*rounds)*o.latency
}
