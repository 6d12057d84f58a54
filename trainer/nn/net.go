package nn

import (
	"fmt"

	"peermesh/trainer"
	"peermesh/trainer/nn/internal/crew"
	"peermesh/trainer/nn/internal/draw"
	"peermesh/trainer/nn/internal/kern"
)

// Side and Classes are what the networks read and tell apart: grey images of
// Side×Side pixels, ten kinds of them.
const (
	Side    = 28
	Classes = 10
)

// MaxBatch bounds a training batch, MaxThreads a Net's threads. A sample of a
// batch takes up to 140 kB, kept for backward.
const (
	MaxBatch   = 1 << 14
	MaxThreads = 64
)

// A Batch is N samples: N×1×28×28 pixels, normalised, and N labels below ten.
// N is at least one and may change from step to step.
type Batch struct {
	X []float32
	Y []uint8
}

// image is the shape of a sample.
var image = shape{1, Side, Side}

var _ trainer.Model[Batch] = (*Net)(nil)

// A Config says how a network starts and runs.
type Config struct {
	Seed      uint64 // of the initial parameters and of dropout
	Stream    uint64 // of dropout: ranks that give theirs draw different masks from one Seed
	Threads   int    // that compute; zero: 1. More than eight are idle
	NoDropout bool   // train without dropout, as comparisons between world sizes need
	Portable  bool   // do without assembly
}

// A Net is a network with the memory that a step takes. It is for one goroutine
// at a time.
type Net struct {
	config          Config
	pixels, classes int // of a sample
	stages          []*stage
	params          []*trainer.Param
	drops           draw.Stream       // the root of all dropout streams
	turned          func()            // see OnBackward
	need            func(i int) error // see BeforeUse
	step            uint64            // calls of ForwardBackward so far

	crew                      *crew.Crew
	forward, backward, finish func(worker, part int) // the crew's jobs, made once

	xs []float32 // a batch to train on, shard by shard
	ys []uint8

	// Of the pass that runs:
	n, shards int
	at        int         // its stage, by index
	masks     draw.Stream // the root of its dropout's
	dropout   bool
}

// NewConvNet is the network of the DDP article: conv 1→16 k3, relu, conv 16→32
// k3, relu, maxpool 2, dropout 0.1, fc 4608→64, relu, dropout 0.25, fc 64→10,
// log_softmax; 300,426 parameters.
//
// It pools before the second relu, not after: max and relu commute to the bit,
// in both directions, and relu then has a quarter of the work.
func NewConvNet(c Config) (*Net, error) {
	return newNet(c, image, convNet)
}

func convNet(b *builder) {
	b.conv("conv1", 16, 3, options{relu: true})
	b.conv("conv2", 32, 3, options{pool: true, relu: true, drop: 0.1})
	b.linear("fc1", 64, options{relu: true, drop: 0.25})
	b.linear("fc2", Classes, options{})
}

// NewTutorial is the network of PyTorch's distributed tutorial: conv 1→10 k5,
// maxpool 2, relu; conv 10→20 k5, dropout2d 0.5, maxpool 2, relu; fc 320→50,
// relu, dropout 0.5; fc 50→10; log_softmax; 21,840 parameters.
//
// It drops channels after relu, not before the pool: a mask of zeros and twos
// commutes with max and relu to the bit, and then has an eighth of the work.
func NewTutorial(c Config) (*Net, error) {
	return newNet(c, image, tutorial)
}

func tutorial(b *builder) {
	b.conv("conv1", 10, 5, options{pool: true, relu: true})
	b.conv("conv2", 20, 5, options{pool: true, relu: true, drop: 0.5, channel: true})
	b.linear("fc1", 50, options{relu: true, drop: 0.5})
	b.linear("fc2", Classes, options{})
}

// NewMLP is a fully connected network of MNIST's images with hidden layers of these widths:
// fc 784→hidden[0], relu, …, fc →10, log_softmax, without dropout. With none it has the
// classic two of 1024, and 1,863,690 parameters. A step is little computing for so many: it
// is the one to try slow links with.
func NewMLP(c Config, hidden ...int) (*Net, error) {
	if len(hidden) == 0 {
		hidden = []int{1024, 1024}
	}
	for i, width := range hidden {
		if width < 1 {
			return nil, fmt.Errorf("nn: hidden layer %d has %d outputs, want at least 1", i+1, width)
		}
	}
	return newNet(c, image, func(b *builder) {
		for i, width := range hidden {
			b.linear(fmt.Sprint("fc", i+1), width, options{relu: true})
		}
		b.linear(fmt.Sprint("fc", len(hidden)+1), Classes, options{})
	})
}

// newNet makes a network that build describes, of samples of a shape; its last
// stage has a float for each class.
func newNet(c Config, in shape, build func(b *builder)) (*Net, error) {
	if c.Threads < 0 || c.Threads > MaxThreads {
		return nil, fmt.Errorf("nn: %d threads, want 0 to %d", c.Threads, MaxThreads)
	}
	c.Threads = max(c.Threads, 1)
	b := &builder{engine: kern.Best(), threads: c.Threads, out: in}
	if c.Portable {
		b.engine = kern.Portable
	}
	build(b)
	root := draw.Stream(c.Seed)
	n := &Net{
		config: c, pixels: in.len(), classes: b.out.len(),
		stages: b.stages, crew: crew.New(c.Threads),
	}
	n.params = b.params(root.At(0))
	n.drops = root.At(1).At(c.Stream)
	n.forward, n.backward, n.finish = n.forwardPart, n.backwardPart, n.finishPart
	return n, nil
}

// SetStep says how many steps the run has taken, which decides the dropout of the
// next one. A run that carries on from another's state, or takes a step again,
// calls it; otherwise ForwardBackward counts.
func (n *Net) SetStep(step int64) { n.step = uint64(step) }

// SetStream changes Config.Stream, for a rank that has another number in the next
// world.
func (n *Net) SetStream(s uint64) { n.drops = draw.Stream(n.config.Seed).At(1).At(s) }

// OnBackward has ForwardBackward call f when it turns from the forward pass to the
// backward pass: for a timeline. Nil: it calls nobody.
func (n *Net) OnBackward(f func()) { n.turned = f }

// BeforeUse has ForwardBackward call need(i) when its forward pass comes to use parameter i,
// which may wait for it: DDP.Need. An error ends the step. Evaluate calls nobody, so a DDP
// with an Update waits before it. Nil: nobody is called.
func (n *Net) BeforeUse(need func(i int) error) { n.need = need }

// Params are the parameters, named as PyTorch names them, in forward order: each
// layer's weight and bias.
func (n *Net) Params() []*trainer.Param { return n.params }
