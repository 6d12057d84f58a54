package main

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"peermesh/mesh"
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

// compete has one contender train on a world of its own.
func compete(ctx context.Context, data *mnist.Data, c contender, o options) (outcome, error) {
	config := testnet.Config{Nodes: o.ranks}
	if o.rate > 0 || o.delay > 0 {
		config.Network = testnet.Model
		config.Link = simlink.Link{Latency: o.delay}
		config.Port = simlink.Port{Up: bytesPerSecond(o.rate), Down: bytesPerSecond(o.rate)}
	}
	net, err := testnet.Start(ctx, config)
	if err != nil {
		return outcome{}, err
	}
	defer net.Close()
	var out outcome
	err = net.Run(func(g *ops.Group) error {
		w := &counted{World: net.World(g.Rank())}
		own := ops.NewGroup(w, ops.Config{ID: 1})
		result, err := train(ctx, own, w.sent.Load, data, c, o)
		if g.Rank() == 0 {
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
