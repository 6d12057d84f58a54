package convnet

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// A run is what a rank's training leads to.
type run struct {
	losses []float64
	hash   [32]byte
}

// share is every size-th sample of a batch, from rank on.
func share(b nn.Batch, rank, size int) (own nn.Batch) {
	for i := rank; i < len(b.Y); i += size {
		own.X = append(own.X, b.X[i*pixels:(i+1)*pixels]...)
		own.Y = append(own.Y, b.Y[i])
	}
	return own
}

// train takes steps on one batch, of which each rank has its share, on a net of any kind.
func train(ctx context.Context, g *ops.Group, net trainer.Model[nn.Batch], o trainer.Optimizer, steps int) (r run, err error) {
	d, err := trainer.NewDDP(ctx, g, net.Params(), trainer.DDPConfig{})
	if err != nil {
		return r, err
	}
	b := share(drawn(4, 1), g.Rank(), g.Size())
	for range steps {
		loss, err := net.ForwardBackward(ctx, b, d.Ready)
		if err := errors.Join(err, d.Wait()); err != nil {
			return r, err
		}
		if err := o.Step(); err != nil {
			return r, err
		}
		r.losses = append(r.losses, loss)
	}
	r.hash, err = trainer.Hash(net.Params())
	return r, err
}

// worlds has every rank of a world train.
func worlds(t *testing.T, size int, rank func(g *ops.Group) (run, error)) (all []run) {
	t.Helper()
	all = make([]run, size)
	var wg sync.WaitGroup
	for i, transport := range memnet.New(size) {
		wg.Go(func() {
			var err error
			if all[i], err = rank(ops.NewGroup(transport, ops.Config{Deterministic: true})); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	return all
}

// TestWorld trains alone and in a world of two, on devices and on the host. The replicas are
// the same to the bit, so are those of devices and of the host, and the loss falls.
func TestWorld(t *testing.T) {
	for size := 1; size <= 2; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) { compareWorlds(t, size) })
	}
}

func compareWorlds(t *testing.T, size int) {
	config := nn.Config{Seed: 3, NoDropout: true, Portable: true}
	sgd := trainer.SGDConfig{LR: 0.02, Momentum: 0.5}
	const steps = 3
	var devices []*gpu.Device
	for i := range size {
		devices = append(devices, opened(t, i))
	}
	var nets []*Net
	var moving []*Optimizer
	for _, d := range devices {
		n := made(t, d, config)
		o, err := n.SGD(sgd)
		if err != nil {
			t.Fatal(err)
		}
		closedAtEnd(t, o)
		nets, moving = append(nets, n), append(moving, o)
	}
	device := worlds(t, size, func(g *ops.Group) (run, error) {
		return train(t.Context(), g, nets[g.Rank()], moving[g.Rank()], steps)
	})
	host := worlds(t, size, func(g *ops.Group) (r run, err error) {
		net, err := nn.NewConvNet(config)
		if err != nil {
			return r, err
		}
		o, err := trainer.NewSGD(net.Params(), sgd)
		if err != nil {
			return r, err
		}
		return train(t.Context(), g, net, o, steps)
	})
	for i, r := range device {
		if len(r.losses) != steps {
			continue // which has been said
		}
		if r.hash != device[0].hash || runtime.GOARCH == "amd64" && r.hash != host[i].hash {
			t.Errorf("rank %d has %x, rank 0 %x, the host %x", i, r.hash[:4], device[0].hash[:4], host[i].hash[:4])
		}
		if r.losses[steps-1] >= r.losses[0] {
			t.Errorf("rank %d: losses %v", i, r.losses)
		}
	}
}

// TestFails has each call fail that a net makes, from its making to its last step: the error
// names the call, later ones work, and nothing is left.
func TestFails(t *testing.T) {
	d := opened(t, 0)
	whole := func() (err error) {
		n, err := New(d, nn.Config{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Close()) }()
		o, err := n.Adadelta(trainer.AdadeltaConfig{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		_, e1 := n.ForwardBackward(t.Context(), drawn(1, 1), nil)
		_, _, e2 := n.Evaluate(t.Context(), drawn(1, 1))
		return errors.Join(e1, o.Step(), e2)
	}
	if err := whole(); err != nil {
		t.Fatal(err)
	}
	for function, calls := range map[string][]int{
		"cuModuleLoadData": {1}, "cuModuleGetFunction": {1, 16}, "cuStreamCreate": {1, 2}, "cuMemAlloc_v2": {1, 5, 7, 8, 20},
		"cuMemHostAlloc": {1, 6}, "cuEventCreate": {1, 6}, "cuMemcpyHtoDAsync_v2": {1, 10}, "cuMemcpyDtoHAsync_v2": {1, 2},
		"cuLaunchKernel": {1, 9, 14, 20, 28, 30, 38}, "cuEventRecord": {20, 24}, "cuStreamWaitEvent": {1, 2, 3}, "cuEventSynchronize": {11},
	} {
		for _, nth := range calls {
			fail(t, function, nth, 999)
			err := whole()
			reset(t)
			var code *gpu.Error
			if !errors.As(err, &code) || code.Call != function || code.Code != 999 {
				t.Errorf("call %d of %s fails: %v", nth, function, err)
			}
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("call %d of %s leaves %q", nth, function, left)
			}
		}
	}
	if err := whole(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestStepFails has each call of a function fail that a step or an evaluation makes: the error
// names it, and the next step is as good as one before.
func TestStepFails(t *testing.T) {
	const most = 60 // calls of a function
	n := made(t, opened(t, 0), nn.Config{NoDropout: true})
	step := func() (float64, error) { return n.ForwardBackward(t.Context(), drawn(1, 1), nil) }
	evaluate := func() (float64, error) {
		loss, _, err := n.Evaluate(t.Context(), drawn(1, 1))
		return loss, err
	}
	want, err := step()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		function string
		larger   bool // than all batches before
		run      func() (float64, error)
	}{
		{"cuEventRecord", false, step}, {"cuEventRecord", false, evaluate}, {"cuEventSynchronize", false, evaluate},
		{"cuStreamSynchronize", true, step}, {"cuMemAlloc_v2", true, evaluate},
	} {
		failed := 0
		for ; failed < most; failed++ {
			if c.larger {
				n.most = 0
			}
			fail(t, c.function, failed+1, 999)
			_, err := c.run()
			reset(t)
			if err == nil {
				break
			}
			var code *gpu.Error
			if !errors.As(err, &code) || code.Call != c.function {
				t.Errorf("call %d of %s fails: %v", failed+1, c.function, err)
			}
		}
		if got, err := step(); err != nil || got != want || failed == 0 || failed == most {
			t.Errorf("%s has failed %d times: a loss of %v, want %v; %v", c.function, failed, got, want, err)
		}
	}
}

// TestLost has a kernel fail on the device, after its launch: the step says so.
func TestLost(t *testing.T) {
	for nth := range 2 {
		d := opened(t, 2)
		n := made(t, d, nn.Config{})
		fail(t, "kernel", 1+20*nth, 700)
		_, err := n.ForwardBackward(t.Context(), drawn(1, 1), nil)
		if err == nil { // it has failed after the loss was known
			_, err = n.Params()[0].Grad.ReadAt(make([]byte, 4), 0)
		}
		if !errors.Is(err, gpu.ErrLost) || !strings.Contains(err.Error(), "700") {
			t.Errorf("kernel %d fails: %v", 1+20*nth, err)
		}
		reset(t)
	}
}

// Example trains on a GPU where there is one, and on the host where not.
func Example() {
	var net trainer.Model[nn.Batch]
	d, err := gpu.Open(gpu.Config{})
	if err == nil {
		defer d.Close()
		net, err = New(d, nn.Config{Seed: 1})
	}
	if errors.Is(err, gpu.ErrUnavailable) {
		net, err = nn.NewConvNet(nn.Config{Seed: 1})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	loss, err := net.ForwardBackward(context.Background(), drawn(2, 1), nil)
	fmt.Printf("%v, %v\n", loss > 0, err)
	// Output: true, <nil>
}
