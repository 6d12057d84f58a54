package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
	"peermesh/trainer"
)

// overlapSteps are taken to time one: the first few are left out, in which streams open,
// buckets are made anew, and rank 0, who says how, gets ahead of the others.
const (
	overlapSteps = 8
	overlapFirst = 4
)

// A pace is how a model computes that only waits: forward takes a third of a step's
// computing and backward the rest, layer by layer, as their work is.
type pace struct {
	net     []layer
	compute time.Duration
	way
}

// A way is what of the communication may be under the computing.
type way int

const (
	nothing way = iota // gradients are ready only when backward has ended
	back               // they travel while backward goes on
	both               // and while the next step's forward pass does: trainer.DDPConfig.Update
)

func (p pace) forwardBackward(need func(int) error, ready func(int)) error {
	total := 0.0
	for _, l := range p.net {
		total += l.work
	}
	for i, l := range p.net {
		if err := need(i); err != nil {
			return err
		}
		time.Sleep(time.Duration(float64(p.compute) / 3 * l.work / total))
	}
	for i := len(p.net) - 1; i >= 0; i-- {
		time.Sleep(time.Duration(float64(p.compute) * 2 / 3 * p.net[i].work / total))
		if p.way != nothing {
			ready(i)
		}
	}
	for i := len(p.net) - 1; p.way == nothing && i >= 0; i-- {
		ready(i)
	}
	return nil
}

// overlap prints what steps of DDP take on modelled links in virtual time, in which
// computing is a wait of a given length: how much of it and of the communication are one
// under the other, whatever this machine is busy with. Shares are how much computing there
// is to the communication.
func overlap(ctx context.Context, out io.Writer, codec string, o options, shares ...float64) error {
	known, err := named(o.net, "example")
	if err != nil {
		return err
	}
	net, c := known.layers, contender{codec: codec}
	alone, err := stepTime(ctx, pace{net: net}, c, o)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "compute\tcommunication\tone after the other\tunder backward\t/ the longer\tforward, too\t/ the longer\t\n")
	for _, share := range shares {
		p := pace{net: net, compute: time.Duration(share * float64(alone))}
		fmt.Fprintf(t, "%v\t%v\t", ms(p.compute), ms(alone))
		for _, p.way = range []way{nothing, back, both} {
			took, err := stepTime(ctx, p, c, o)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%v\t", ms(took))
			if p.way != nothing {
				fmt.Fprintf(t, "%.2f\t", took.Seconds()/max(p.compute, alone).Seconds())
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// stepTime is a step's time, in virtual time.
func stepTime(ctx context.Context, p pace, c contender, o options) (step time.Duration, err error) {
	testnet.Virtual(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a channel of this bubble
		defer cancel()
		var net *testnet.Net
		net, err = testnet.Start(ctx, testnet.Config{
			Nodes: o.ranks, Network: testnet.Model,
			Link: simlink.Link{Latency: o.delay},
			Port: simlink.Port{Up: bytesPerSecond(o.rate), Down: bytesPerSecond(o.rate)},
		})
		if err != nil {
			return
		}
		defer net.Close()
		err = net.Run(func(g *ops.Group) error {
			took, err := steps(ctx, g, p, c)
			if g.Rank() == 0 {
				step = took
			}
			return err
		})
	})
	return step, err
}

// steps takes some on one rank, and returns the mean of the later ones.
func steps(ctx context.Context, g *ops.Group, p pace, c contender) (time.Duration, error) {
	var params []*trainer.Param
	for _, l := range p.net {
		params = append(params, &trainer.Param{Name: l.name, Value: tensor.New(tensor.Float32, l.elements), Grad: tensor.New(tensor.Float32, l.elements)})
	}
	hook, err := c.hook(params)
	if err != nil {
		return 0, err
	}
	config := trainer.DDPConfig{Hook: hook, Abreast: true}
	if p.way == both {
		config.Update = func(int) error { return nil }
	}
	ddp, err := trainer.NewDDP(ctx, g, params, config)
	if err != nil {
		return 0, err
	}
	var begin time.Time
	for i := range overlapSteps {
		if i == overlapFirst {
			begin = time.Now()
		}
		if err := p.forwardBackward(ddp.Need, ddp.Ready); err != nil {
			return 0, err
		}
		if p.way != both {
			if err := ddp.Wait(); err != nil {
				return 0, err
			}
		}
	}
	took := time.Since(begin) / (overlapSteps - overlapFirst)
	if p.way == both { // the last step's, which are under the next one's forward in the time above
		err = ddp.Wait()
	}
	return took, err
}
