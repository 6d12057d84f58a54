package convnet

import (
	"errors"
	"fmt"

	"peermesh/gpu"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// A Net is a network of package nn with its parameters, gradients and intermediate results
// on a device. It is a trainer.Model. It is for one goroutine at a time.
type Net struct {
	d        *gpu.Device
	seed     uint64
	drops    uint64 // the root of all random numbers of dropout
	step     uint64 // calls of ForwardBackward so far
	dropping bool   // in training
	begun    func() // the gradients; may be nil

	*program
	base   stock // what lasts as long as the net
	room   stock // what a batch needs
	most   int   // samples that there is room for
	values *gpu.Memory
	params []*trainer.Param
	stages []*stage
	feed   feed
	parts  *gpu.Memory // a sum of each shard
}

var _ trainer.Model[nn.Batch] = (*Net)(nil)

// New is the ConvNet on a device, with the parameters that nn.NewConvNet draws from the same
// seed. Of the configuration, Threads and Portable are for hosts. The caller closes it,
// before the device. Where the device has no room the error is gpu.ErrOutOfMemory.
func New(d *gpu.Device, c nn.Config) (*Net, error) { return newNet(d, c, nn.NewConvNet, convNet()) }

// NewTutorial is likewise nn.NewTutorial's network, that of PyTorch's distributed tutorial.
func NewTutorial(d *gpu.Device, c nn.Config) (*Net, error) {
	return newNet(d, c, nn.NewTutorial, tutorial())
}

// newNet makes on the device what is drawn on the host.
func newNet(d *gpu.Device, c nn.Config, draw func(nn.Config) (*nn.Net, error), stages []*stage) (*Net, error) {
	host, err := draw(c)
	if err != nil {
		return nil, err
	}
	n := &Net{d: d, seed: c.Seed, dropping: !c.NoDropout, base: stock{d: d}, stages: stages}
	n.SetStream(c.Stream)
	if err := n.build(host.Params()); err != nil {
		return nil, errors.Join(fmt.Errorf("convnet: %w", err), n.Close())
	}
	return n, nil
}

// build makes what does not depend on batches. All parameters lie in one memory, in order, and
// so may what an optimiser remembers of each; the gradients of each stage in one of its own.
func (n *Net) build(host []*trainer.Param) error {
	module := stocked(&n.base, func() (*gpu.Module, error) { return n.d.Load(kernelText) })
	s := n.base.stream()
	n.feed.s = n.base.stream()
	total := 0
	for _, p := range host {
		total += p.Value.Len()
	}
	n.values = n.base.memory(total, 4)
	for i, st := range n.stages {
		st.grads = n.base.memory(host[2*i].Value.Len()+host[2*i+1].Value.Len(), 4)
	}
	if n.base.err != nil {
		return n.base.err
	}
	var err error
	if n.program, err = newProgram(module, s); err != nil {
		return err
	}
	from := 0
	for i, p := range host {
		st := n.stages[i/2]
		own := &trainer.Param{Name: p.Name, Value: part(n.values, from, p.Value)}
		from += p.Value.Len()
		// Backward, the bias comes first.
		if i%2 == 0 {
			own.Grad, st.weight = part(st.grads, host[i+1].Value.Len(), p.Value), own
		} else {
			own.Grad, st.bias = part(st.grads, 0, p.Value), own
		}
		n.params = append(n.params, own)
		if err := tensor.Copy(own.Value, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// part is a tensor like x whose elements begin at element from of memory.
func part(m *gpu.Memory, from int, x tensor.Tensor) tensor.Tensor {
	flat := tensor.In(m, tensor.Float32, int(m.Len()/4)).Slice(from, from+x.Len())
	shaped, err := flat.Reshape(x.Shape()...)
	if err != nil {
		panic("convnet: " + err.Error()) // it has as many elements, so that no test comes here
	}
	return shaped
}

// reserve makes room for batches of n samples. What there was for smaller ones is freed
// first, when the device has done with it.
func (n *Net) reserve(samples int) error {
	if samples <= n.most {
		return nil
	}
	err := errors.Join(n.s.Sync(), n.feed.s.Sync(), n.room.close())
	n.most, n.room = 0, stock{d: n.d} // gone, even if that failed
	if err != nil {
		return fmt.Errorf("convnet: %w", err)
	}
	n.feed.reserve(&n.room, samples)
	largest := 0
	for _, s := range n.stages {
		s.reserve(&n.room, samples)
		largest = max(largest, s.weight.Value.Len())
	}
	n.parts = n.room.memory(shards(samples)*largest, 4)
	if n.room.err != nil {
		return errors.Join(fmt.Errorf("convnet: room for a batch of %d samples: %w", samples, n.room.err), n.room.close())
	}
	n.most = samples
	return nil
}

// Close waits for the device and frees all that the net has on it.
func (n *Net) Close() error { return errors.Join(n.idle(), n.room.close(), n.base.close()) }

// idle waits for what is queued, if it has not been waited for: a batch may be on its way from
// memory that is about to be freed.
func (n *Net) idle() error {
	streams := []*gpu.Stream{n.feed.s}
	if n.program != nil {
		streams = append(streams, n.s)
	}
	var errs []error
	for _, s := range streams {
		if s == nil {
			continue
		}
		if err := s.Sync(); !errors.Is(err, gpu.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Params are the parameters, named as nn's, in forward order: each layer's weight and bias.
// They are on the device. A value is read when what has been queued on it is done.
func (n *Net) Params() []*trainer.Param { return n.params }

// SetStep says how many steps the run has taken, which decides the dropout of the next one;
// see nn.Net.
func (n *Net) SetStep(step int64) { n.step = uint64(step) }

// SetStream changes Config.Stream, for a rank that has another number in the next world.
func (n *Net) SetStream(s uint64) { n.drops = draw(draw(n.seed, 1), s) }

// OnBackward has f called in each step when forward is queued and the gradients begin, as
// nn.Net does when they do; nil: nothing.
func (n *Net) OnBackward(f func()) { n.begun = f }

// draw is element key of a stream of random numbers, SplitMix64, as kernels.cu has it: where
// another stream begins. The streams are those of package nn.
func draw(stream, key uint64) uint64 {
	z := stream + (key+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// shards is into how many a batch is cut, whose sums are added up one by one and then as a
// tree; see nn/shard.go.
func shards(n int) int {
	const group, most = 8, 16
	return max(1, min(n/group, most))
}
