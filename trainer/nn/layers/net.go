package layers

import (
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/nn/internal/crew"
	"peermesh/trainer/nn/internal/draw"
	"peermesh/trainer/nn/internal/kern"
)

// MaxBatch bounds the floats of a batch's input, MaxThreads a Net's threads.
const (
	MaxBatch   = 1 << 28
	MaxThreads = 64
)

// A Batch is N samples and what the network should make of them. N is at least
// one, but see Net.Synchronize, and may change from step to step.
type Batch struct {
	X       []float32 // N samples. What an Embedding looks up is a number below its Rows
	Labels  []int32   // for CrossEntropy: one for each row of the output
	Targets []float32 // for MSE: one for each float of the output
}

var _ trainer.Model[Batch] = (*Net)(nil)

// A Config says how a network starts and runs.
type Config struct {
	Seed     uint64 // of the initial parameters and of dropout
	Stream   uint64 // of dropout: ranks that give theirs draw different masks from one Seed
	Threads  int    // that compute; zero: 1. More than sixteen are idle
	Portable bool   // do without assembly
}

// A Net is a network with the memory that a step takes: a trainer.Model. It is for
// one goroutine at a time.
type Net struct {
	config  Config
	root    Layer
	loss    Loss
	in, out Shape // of a sample

	weights []*Weight
	params  []*trainer.Param
	buffers []*trainer.Param

	crew  *crew.Crew
	group *ops.Group
	drops draw.Stream // the root of all dropout
	step  uint64      // calls of ForwardBackward so far

	weight float64 // of this rank's gradients in the next step; zero: as all others'

	pass  Pass
	masks draw.Stream // this step's
	dz    []float32   // the gradient of the output
	fold  folding
	sums  []kern.Sums // a convolution's, while it goes backward
}

// New builds a network that turns samples of a shape into what the loss judges.
func New(c Config, in Shape, root Layer, loss Loss) (*Net, error) {
	return newNet(c, in, root, loss, true)
}

func newNet(c Config, in Shape, root Layer, loss Loss, raw bool) (*Net, error) {
	if c.Threads < 0 || c.Threads > MaxThreads {
		return nil, fmt.Errorf("layers: %d threads, want 0 to %d", c.Threads, MaxThreads)
	}
	for _, d := range in {
		if d < 1 || d > MaxBatch {
			return nil, fmt.Errorf("layers: a sample of shape %v", in)
		}
	}
	if root == nil || loss == nil {
		return nil, errors.New("layers: a network without a layer or without a loss")
	}
	c.Threads = max(c.Threads, 1)
	n := &Net{config: c, root: root, loss: loss, in: in, crew: crew.New(c.Threads), drops: draw.Stream(c.Seed).At(c.Stream)}
	n.fold.job = n.fold.part
	b := &Builder{net: n, engine: kern.Best(), raw: raw, made: make(map[Layer]bool), names: make(map[string]bool)}
	if c.Portable {
		b.engine = kern.Portable
	}
	var err error
	if n.out, err = b.Child("", root, in); err == nil {
		err = b.err
	}
	if err == nil {
		err = loss.Init(n.out)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Params are the parameters in forward order, named as PyTorch's state_dict names
// those of the same layers: "layer1.0.conv1.weight".
func (n *Net) Params() []*trainer.Param { return n.params }

// Buffers are what training changes besides, for DDPConfig.Buffers, State.Buffers
// and files: the running means, variances and counts of batch norms.
func (n *Net) Buffers() []*trainer.Param { return n.buffers }

// Out is the shape of a sample's output.
func (n *Net) Out() Shape { return append(Shape(nil), n.out...) }

// SetStep says how many steps the run has taken, which decides the dropout of the
// next one. A run that carries on from another's state, or takes a step again,
// calls it; otherwise ForwardBackward counts.
func (n *Net) SetStep(step int64) { n.step = uint64(step) }

// SetStream changes Config.Stream, for a rank that has another number in the next
// world.
func (n *Net) SetStream(s uint64) { n.drops = draw.Stream(n.config.Seed).At(s) }

// Synchronize has batch norms take the statistics of all ranks' batches together,
// as torch.nn.SyncBatchNorm does, from now on; nil: of this rank's alone. Then all
// ranks of the group run ForwardBackward alike; one that has no samples in a step takes
// part with an empty Batch, lest the others wait for it. A group of its own, made by
// Split or with another Config.ID, keeps these small sums from waiting behind a DDP's
// gradients.
func (n *Net) Synchronize(g *ops.Group) { n.group = g }

// Weigh says what this rank's gradients will count for in the step that begins, where
// ranks of a Synchronize have batches of different lengths: as DDP.Weigh, and with the same
// weight. Without it all count alike.
func (n *Net) Weigh(weight float64) { n.weight = weight }
