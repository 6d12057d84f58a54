package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"peermesh/gpu"
	"peermesh/gpu/convnet"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// What may compute, by their names on the command line.
const (
	deviceCPU  = "cpu"
	deviceCUDA = "cuda" // device 0, or of a launch the ranks' in turn; cuda:N is device N
)

// A prefetcher is a network to which batches have a way to go: while a step's gradients
// travel, it sets out with the batch of the next one.
type prefetcher interface{ Prefetch(b nn.Batch) error }

var _ prefetcher = (*convnet.Net)(nil)

// A network is what a recipe trains, wherever it computes.
type network interface {
	trainer.Model[nn.Batch]
	Evaluate(ctx context.Context, b nn.Batch) (loss float64, correct int, err error)
	SetStep(step int64)
	SetStream(stream uint64)
	OnBackward(f func())
}

var (
	_ network = (*nn.Net)(nil)
	_ network = (*convnet.Net)(nil)
)

// Computing is where a rank computes.
type Computing struct {
	Device string `default:"cpu" placeholder:"NAME" help:"Compute on the cpu, or on a GPU: cuda, or cuda:N for device N of peer gpu (cpu)."`
}

// onGPU reports whether a device computes. What is not given is the CPU.
func (c *Computing) onGPU() bool { return c.Device != "" && c.Device != deviceCPU }

// ordinal is the number of the device.
func (c *Computing) ordinal() (int, error) {
	digits, numbered := strings.CutPrefix(c.Device, deviceCUDA+":")
	if c.Device == deviceCUDA {
		return 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 15)
	if !numbered || err != nil {
		return 0, fmt.Errorf("--device is %q, want %s, %s or %s:N", c.Device, deviceCPU, deviceCUDA, deviceCUDA)
	}
	return int(n), nil
}

// validate finds what is no device's name.
func (c *Computing) validate() error {
	if !c.onGPU() {
		return nil
	}
	_, err := c.ordinal()
	return err
}

// open makes the device ready, if there is to be one; a rank that has none should not join.
func (c *Computing) open() (*gpu.Device, error) {
	if !c.onGPU() {
		return nil, nil
	}
	n, err := c.ordinal()
	if err != nil {
		return nil, err
	}
	d, err := gpu.Open(gpu.Config{Ordinal: n})
	if err != nil {
		return nil, c.unusable(err)
	}
	logger.Infof("computing on %v", d)
	return d, nil
}

// unusable says in a sentence why there is no device. Where it was looked for is for peer gpu
// to say.
func (c *Computing) unusable(err error) error {
	if errors.Is(err, gpu.ErrUnavailable) {
		err = fmt.Errorf("%w here (peer gpu says why, and what to do)", gpu.ErrUnavailable)
	}
	return fmt.Errorf("--device %s: %w", c.Device, err)
}

// shares deals out the devices of this machine among the ranks of a launch, unless one is
// named.
func (c *Computing) shares() (device func(rank int) string, err error) {
	if c.Device != deviceCUDA {
		return func(int) string { return c.Device }, nil
	}
	all, err := gpu.Devices()
	if err != nil {
		return nil, c.unusable(err)
	}
	return func(rank int) string { return fmt.Sprintf("%s:%d", deviceCUDA, rank%len(all)) }, nil
}

// released closes a device, if there is one, with all that was made on it. After an error
// that one is the reason.
func released(d *gpu.Device, err error) error {
	if d == nil {
		return err
	}
	if e := d.Close(); err == nil && e != nil {
		return fmt.Errorf("closing the device: %w", e)
	}
	return err
}

// convNet is the program of the DDP article, where it is to compute.
func (t *training) convNet() (*recipe, error) {
	if t.device == nil {
		return newConvNet(t.plan, t.data.Train)
	}
	return newDeviceConvNet(t.device, t.plan, t.data.Train)
}

// newDeviceConvNet is newConvNet on a device, which frees it.
func newDeviceConvNet(d *gpu.Device, p plan, set *mnist.Set) (*recipe, error) {
	model, err := convnet.New(d, nn.Config{Seed: p.seed, NoDropout: !p.dropout})
	if err != nil {
		return nil, err
	}
	r := &recipe{model: model, params: model.Params(), set: set, mean: 0.1302, std: 0.3069}
	r.optimizer, err = model.Adadelta(trainer.AdadeltaConfig{LR: p.lr})
	return r, err
}

// tutorialNet is the network of the tutorial with its optimiser, likewise.
func (t *training) tutorialNet(c nn.Config) (network, trainer.Optimizer, error) {
	sgd := trainer.SGDConfig{LR: t.plan.lr, Momentum: 0.5}
	if t.device != nil {
		model, err := convnet.NewTutorial(t.device, c)
		if err != nil {
			return nil, nil, err
		}
		o, err := model.SGD(sgd)
		return model, o, err
	}
	model, err := nn.NewTutorial(c)
	if err != nil {
		return nil, nil, err
	}
	o, err := trainer.NewSGD(model.Params(), sgd)
	return model, o, err
}

// prefetch sets out with the batch of some samples, if there are any and it has a way to go.
func (r *recipe) prefetch(indices []int) error {
	p, ok := r.model.(prefetcher)
	if !ok || len(indices) == 0 {
		return nil
	}
	r.fill(r.set, indices)
	return p.Prefetch(r.batch)
}

// following are this rank's samples of the step after one, if it is in this epoch and run: a
// prediction, that another world may prove wrong.
func (e *elastic) following(s trainer.Share) []int {
	if e.Steps > 0 && s.Step+1 >= e.Steps {
		return nil
	}
	p := s.Progress
	p.Consumed += int64(s.Total)
	next, _ := e.Sampler.Deal(p, e.group.Rank(), e.group.Size())
	return next.Indices
}

// lost is a step after which there is no point in another world if it has lost the device.
func (e *elastic) lost(step func(context.Context, trainer.Share) error) func(context.Context, trainer.Share) error {
	return func(ctx context.Context, s trainer.Share) error {
		err := step(ctx, s)
		if errors.Is(err, gpu.ErrLost) {
			e.fatal = err
		}
		return err
	}
}
