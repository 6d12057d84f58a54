package convnet

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"peermesh/gpu"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// testConfig is a net's whose sums the host takes in the same order.
var testConfig = nn.Config{Seed: 7, Stream: 3, Portable: true}

// drawn is a batch of n samples of random pixels.
func drawn(n int, seed uint64) nn.Batch {
	rng := rand.New(rand.NewPCG(seed, 5))
	b := nn.Batch{X: make([]float32, n*pixels), Y: make([]uint8, n)}
	for i := range b.X {
		b.X[i] = float32(rng.NormFloat64())
	}
	for i := range b.Y {
		b.Y[i] = uint8(rng.IntN(nn.Classes))
	}
	return b
}

// read is a tensor's elements, from wherever they are.
func read(t *testing.T, x tensor.Tensor) []float32 {
	t.Helper()
	v := make([]float32, x.Len())
	if err := tensor.Copy(tensor.Of(v), x); err != nil {
		t.Fatal(err)
	}
	return v
}

// alike compares tensors of a device and of the host: to the bit where the host's compiler
// fuses nothing, and else to 1e-5 of the largest.
func alike(t *testing.T, what string, device, host tensor.Tensor) {
	t.Helper()
	got, want := read(t, device), read(t, host)
	largest, off := 0.0, 0.0
	for i := range want {
		largest = math.Max(largest, math.Abs(float64(want[i])))
		off = math.Max(off, math.Abs(float64(got[i])-float64(want[i])))
	}
	limit := 1e-5 * largest
	if runtime.GOARCH == "amd64" {
		limit = 0
	}
	if !(off <= limit) || largest == 0 {
		t.Errorf("%s: off by %g, of %g", what, off, largest)
	}
}

// optimizers are one of each place, with the same settings.
func optimizers(t *testing.T, device *Net, host *nn.Net) (pairs [][2]trainer.Optimizer) {
	t.Helper()
	adadelta := trainer.AdadeltaConfig{LR: 0.5, WeightDecay: 0.01}
	sgd := trainer.SGDConfig{LR: 0.05, Momentum: 0.9, Dampening: 0.1}
	a, e1 := device.Adadelta(adadelta)
	b, e2 := trainer.NewAdadelta(host.Params(), adadelta)
	c, e3 := device.SGD(sgd)
	d, e4 := trainer.NewSGD(host.Params(), sgd)
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		t.Fatal(err)
	}
	closedAtEnd(t, a)
	closedAtEnd(t, c)
	return [][2]trainer.Optimizer{{a, b}, {c, d}}
}

// networks are both, as the device and the host have them.
var networks = map[string]struct {
	device func(*gpu.Device, nn.Config) (*Net, error)
	host   func(nn.Config) (*nn.Net, error)
}{"convnet": {New, nn.NewConvNet}, "tutorial": {NewTutorial, nn.NewTutorial}}

// TestStep takes steps with dropout on the device and on the host, with batches of one shard
// and of several, and both optimisers. Losses, gradients, parameters, what the optimisers
// remember, and evaluations are the same.
func TestStep(t *testing.T) {
	for name, make := range networks {
		t.Run(name, func(t *testing.T) {
			net, err := make.device(opened(t, 0), testConfig)
			if err != nil {
				t.Fatal(err)
			}
			closedAtEnd(t, net)
			host, err := make.host(testConfig)
			if err != nil {
				t.Fatal(err)
			}
			compareSteps(t, net, host)
		})
	}
}

func compareSteps(t *testing.T, net *Net, host *nn.Net) {
	for i, p := range net.Params() {
		if h := host.Params()[i]; p.Name != h.Name || p.Value.String() != h.Value.String() || p.Grad.String() != h.Grad.String() {
			t.Fatalf("parameter %d is %s %v, want %s %v", i, p.Name, p.Value, h.Name, h.Value)
		}
		alike(t, p.Name+" at first", p.Value, host.Params()[i].Value)
	}
	pairs := optimizers(t, net, host)
	for step, size := range []int{3, 17, 2} {
		b := drawn(size, uint64(step))
		var order []int
		got, err := net.ForwardBackward(t.Context(), b, func(i int) { order = append(order, i) })
		if err != nil {
			t.Fatal(err)
		}
		want, err := host.ForwardBackward(t.Context(), b, nil)
		if err != nil || math.Abs(got-want) > 1e-12*want && runtime.GOARCH == "amd64" || math.Abs(got-want) > 1e-5*want {
			t.Errorf("step %d: loss %v, want %v, %v", step, got, want, err)
		}
		if len(order) != 8 || order[0] != 7 || order[7] != 0 {
			t.Errorf("gradients are ready in the order %v", order)
		}
		for i, p := range net.Params() {
			alike(t, p.Name+"'s gradient", p.Grad, host.Params()[i].Grad)
		}
		for _, o := range pairs[step%2] {
			if err := o.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range net.Params() {
			alike(t, p.Name, p.Value, host.Params()[i].Value)
		}
	}
	for _, pair := range pairs {
		sameState(t, pair[0].State(), pair[1].State())
	}
	b := drawn(5, 9)
	l1, c1, e1 := net.Evaluate(t.Context(), b)
	l2, c2, e2 := host.Evaluate(t.Context(), b)
	if errors.Join(e1, e2) != nil || c1 != c2 || math.Abs(l1-l2) > 1e-5*l2 {
		t.Errorf("evaluated: %v, %d, %v; on the host %v, %d, %v", l1, c1, e1, l2, c2, e2)
	}
}

// sameState compares optimisers' states by names, types, shapes and elements.
func sameState(t *testing.T, device, host []*trainer.Param) {
	t.Helper()
	if len(device) != len(host) {
		t.Fatalf("a state of %d tensors, want %d", len(device), len(host))
	}
	for i, p := range device {
		h := host[i]
		if p.Name != h.Name || p.Value.String() != h.Value.String() {
			t.Errorf("tensor %d is %s %v, want %s %v", i, p.Name, p.Value, h.Name, h.Value)
			continue
		}
		if p.Value.DType() == tensor.Float32 {
			alike(t, p.Name, p.Value, h.Value)
		}
	}
}

// TestMove has what a checkpoint of the one holds become the other's.
func TestMove(t *testing.T) {
	d := opened(t, 1)
	net := made(t, d, nn.Config{Seed: 1})
	host, err := nn.NewConvNet(nn.Config{Seed: 2, Portable: true})
	if err != nil {
		t.Fatal(err)
	}
	pair := optimizers(t, net, host)[0]
	if _, err := host.ForwardBackward(t.Context(), drawn(2, 1), nil); err != nil {
		t.Fatal(err)
	}
	if err := pair[1].Step(); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(trainer.LoadState(net.Params(), host.Params()), trainer.LoadState(pair[0].State(), pair[1].State()))
	a, e1 := trainer.Hash(append(net.Params(), pair[0].State()...))
	b, e2 := trainer.Hash(append(host.Params(), pair[1].State()...))
	if err := errors.Join(err, e1, e2); err != nil || a != b {
		t.Errorf("hashes %x and %x: %v", a, b, err)
	}
}

// TestOverlap has a batch come to the device while that is still at work: its stream is held
// up, and the copy ends all the same.
func TestOverlap(t *testing.T) {
	d := opened(t, 0)
	net := made(t, d, nn.Config{})
	if err := net.reserve(1); err != nil {
		t.Fatal(err)
	}
	work := make(chan struct{})
	err := net.s.Hold(work)
	first := net.feed.put(net.program, drawn(1, 1), 1)
	second := net.feed.put(net.program, drawn(1, 2), 1)
	err = errors.Join(err, net.end(), first.copied.Sync(), second.copied.Sync())
	stream, e := net.d.NewEvent()
	err = errors.Join(err, e, net.s.Record(stream))
	done, e := stream.Happened()
	if err := errors.Join(err, e); err != nil || done {
		t.Errorf("the stream that computes is done: %v, %v", done, err)
	}
	close(work)
	if err := errors.Join(net.s.Sync(), stream.Close()); err != nil {
		t.Error(err)
	}
}

// TestRefused has what cannot be trained on, or with.
func TestRefused(t *testing.T) {
	d := opened(t, 0)
	net := made(t, d, nn.Config{})
	bad := drawn(2, 1)
	bad.Y[1] = nn.Classes
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("that is it"))
	_, _, e1 := net.Evaluate(over, drawn(1, 1))
	_, _, e2 := net.Evaluate(t.Context(), bad)
	_, e3 := net.ForwardBackward(over, drawn(1, 1), nil)
	_, e4 := net.ForwardBackward(t.Context(), nn.Batch{}, nil)
	_, e5 := net.ForwardBackward(t.Context(), nn.Batch{X: make([]float32, 3), Y: make([]uint8, 1)}, nil)
	_, e6 := net.ForwardBackward(t.Context(), nn.Batch{Y: make([]uint8, nn.MaxBatch+1)}, nil)
	_, e7 := New(d, nn.Config{Threads: -1})
	_, e8 := net.Adadelta(trainer.AdadeltaConfig{LR: -1})
	_, e9 := net.SGD(trainer.SGDConfig{Nesterov: true})
	middle, cancel := context.WithCancelCause(t.Context())
	_, e10 := net.ForwardBackward(middle, drawn(1, 1), func(i int) {
		if i == 4 {
			cancel(errors.New("that is it"))
		}
	})
	net.params[2].Grad = tensor.New(tensor.Float32, net.params[2].Grad.Shape()...)
	_, e11 := net.ForwardBackward(t.Context(), drawn(1, 1), nil)
	o, err := net.SGD(trainer.SGDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e12 := o.Step()
	for i, c := range []struct {
		err   error
		words string
	}{
		{e1, "convnet: forward: that is it"}, {e2, "sample 1 has label 10"}, {e3, "convnet: forward: that is it"}, {e4, "no samples"},
		{e5, "has 3 pixels"}, {e6, "16385 samples"}, {e7, "-1 threads"}, {e8, "learning rate"}, {e9, "Nesterov"},
		{e10, "convnet: backward: that is it"}, {e11, "the gradient of conv2.weight has become float32[32 16 3 3], or left the device"},
		{e12, "the gradient of conv2.weight has become"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.words) {
			t.Errorf("%d: %v, want %q", i+1, c.err, c.words)
		}
	}
}

// TestNoRoom has a batch be too large for the device, which says how large, and a smaller one
// be trained on afterwards.
func TestNoRoom(t *testing.T) {
	d := opened(t, 0)
	net := made(t, d, nn.Config{})
	_, err := net.ForwardBackward(t.Context(), drawn(2000, 1), nil)
	if !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "convnet: room for a batch of 2000 samples: gpu: cuMemAlloc_v2: ") ||
		!strings.Contains(err.Error(), " bytes, of ") {
		t.Errorf("a batch that is too large: %v", err)
	}
	if _, err := net.ForwardBackward(t.Context(), drawn(1, 1), nil); err != nil {
		t.Error(err)
	}
}
