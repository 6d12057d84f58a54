package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"peermesh/gpu"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// An outcome is the last event of a run that reports in JSON.
type outcome struct {
	Event string
	Loss  float64
	Hash  string `json:"params_hash"`
}

// TestDevice trains on a device as on the CPU: alone, from a checkpoint that the CPU has made,
// and as launches of two ranks, which share out what devices there are, with either network,
// and with gradients and models that are moved in other ways than a DDP does.
func TestDevice(t *testing.T) {
	env, data, folder := fakeGPU(t), writeSomeDigits(t, 32, 8), t.TempDir()
	run := func(args ...string) (o outcome) {
		t.Helper()
		status, stdout, stderr := with(t, env, append(args, "--data", data, "--batch-size", "4", "--log", "json")...)
		if status != 0 {
			t.Fatalf("%q: status %d, %s\n%s", args, status, stderr, stdout)
		}
		if err := json.Unmarshal([]byte(lastLine(stdout)), &o); err != nil {
			t.Fatalf("%v: %q", err, stdout)
		}
		return o
	}
	host := run("train", "--world", "1", "--steps", "2", "--checkpoint", folder, "--every", "1")
	device := run("train", "--world", "1", "--steps", "2", "--device", "cuda:3")
	if math.Abs(device.Loss-host.Loss) > 1e-4*host.Loss || device.Hash == "" {
		t.Errorf("on the device %+v, on the host %+v", device, host)
	}
	further := run("train", "--world", "1", "--steps", "3", "--device", "cuda", "--checkpoint", folder, "--resume")
	if further.Hash == host.Hash || further.Hash == "" {
		t.Errorf("resumed: %+v, before %+v", further, host)
	}
	for _, flags := range []string{"--net tutorial", "--compress int8", "--method diloco --sync-every 2"} {
		args := append([]string{"launch", "-n", "2", "--steps", "2", "--threads", "1"}, strings.Fields(flags)...)
		host, device := run(args...), run(append(args, "--device", "cuda")...)
		if math.Abs(device.Loss-host.Loss) > 1e-3*host.Loss || device.Hash == "" {
			t.Errorf("two ranks, %q: on devices %+v, on the host %+v", flags, device, host)
		}
	}
}

// A diary is a network that writes down what is done, and in which order.
type diary struct {
	network
	did *[]string
}

func (d diary) note(what string, b nn.Batch) {
	*d.did = append(*d.did, fmt.Sprintf("%s %v", what, b.Y))
}

func (d diary) ForwardBackward(ctx context.Context, b nn.Batch, ready func(i int)) (float64, error) {
	d.note("train", b)
	return d.network.ForwardBackward(ctx, b, ready)
}

func (d diary) Prefetch(b nn.Batch) error {
	d.note("fetch", b)
	return nil
}

// TestPrefetches has both recipes set out with each batch but an epoch's first in the step
// before it, and before gradients are waited for, and with none that a run does not take.
func TestPrefetches(t *testing.T) {
	data := loadSome(t, 20, 4)
	for _, net := range []string{netConvNet, netTutorial} {
		p := (&Training{Net: net, Steps: 7, BatchSize: new(5), Epochs: new(2)}).plan(1, 1)
		var did []string
		_, errs := everyRank(t, 1, data, func(int) plan { return p }, func(r *training, w *memnet.World) error {
			return written(t.Context(), r, w, &did)
		})
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		trained, fetched := 0, 0
		for i, what := range did {
			batch, fetch := strings.CutPrefix(what, "fetch ")
			if !fetch {
				trained++
				continue
			}
			fetched++
			if did[i+1] != "train "+batch || i == 0 {
				t.Errorf("%s: %q, then %q", net, what, did[i+1])
			}
		}
		if trained != 7 || fetched != 3+2 { // epochs of four steps, of which the second is cut short
			t.Errorf("%s: %d steps, %d batches fetched ahead: %q", net, trained, fetched, did)
		}
	}
}

// written is whole, of a network that writes down what is done.
func written(ctx context.Context, r *training, w *memnet.World, did *[]string) (err error) {
	if r.plan.net == netConvNet {
		e, err := newElastic(r, &Checkpointing{})
		if err != nil {
			return err
		}
		e.recipe.model = diary{e.recipe.model, did}
		e.present = func() func(int) string { return r.peer }
		return e.Run(ctx, &single{world: w, over: e.over})
	}
	if r.recipe, err = r.newTutorial(); err != nil {
		return err
	}
	r.recipe.model = diary{r.recipe.model, did}
	for epoch := range r.plan.epochs {
		_, e := r.epoch(ctx, epoch)
		err = errors.Join(err, e)
	}
	return err
}

// TestDeviceLost has a step that has lost the device be the run's last.
func TestDeviceLost(t *testing.T) {
	lost := fmt.Errorf("a kernel: %w", gpu.ErrLost)
	for _, c := range []struct{ err, fatal error }{{lost, lost}, {errors.New("another rank"), nil}, {nil, nil}} {
		e := &elastic{}
		step := e.lost(func(context.Context, trainer.Share) error { return c.err })
		if err := step(t.Context(), trainer.Share{}); err != c.err || e.over() != c.fatal {
			t.Errorf("%v: %v, and over for %v", c.err, err, e.over())
		}
	}
}

// TestNoDevice says in a sentence that there is none, and why one has failed.
func TestNoDevice(t *testing.T) {
	data := writeSomeDigits(t, 8, 2)
	for _, args := range [][]string{{"train", "--world", "1"}, {"launch", "-n", "2"}} {
		status, _, stderr := with(t, noLibraries, append(args, "--device", "cuda", "--data", data)...)
		if status != statusFailed || stderr != "peer: --device cuda: gpu: not available here (peer gpu says why, and what to do)\n" {
			t.Errorf("%q: status %d, stderr %q", args, status, stderr)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	env := fakeGPU(t)
	for _, c := range []struct{ fail, device, words string }{
		{"none 1 1", "cuda:9", "--device cuda:9: gpu: device 9: "},
		{"cuMemAlloc_v2 5 2", "cuda", "convnet: gpu: cuMemAlloc_v2: 1201704 bytes, of "},
		{"kernel 5 700", "cuda", "(FAKE_ERROR_700, 700)"},
		{"cuLaunchKernel 3 1", "cuda", "cuLaunchKernel: kernel convolve over 36864 elements"},
		{"cuDevicePrimaryCtxRelease_v2 1 1", "cuda", "closing the device: gpu: cuDevicePrimaryCtxRelease_v2"},
	} {
		status, _, stderr := with(t, append(env, "FAKE_FAIL="+c.fail), "train", "--world", "1", "--steps", "1", "--batch-size", "2", "--data", data, "--device", c.device)
		if status != statusFailed || !strings.Contains(stderr, c.words) {
			t.Errorf("%s: status %d, stderr %q, want %q", c.fail, status, stderr, c.words)
		}
	}
}

// TestDeviceUsage refuses what a device cannot do.
func TestDeviceUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`--device is "tpu"`:               {"tpu"},
		`--device is "cuda:-1"`:           {"cuda:-1"},
		`--device is "cudas"`:             {"cudas"},
		"--compress is for --net convnet": {"cuda", "--net", "tutorial", "--compress", "int8"},
	} {
		status, _, stderr := in(append([]string{"train", "--world", "1", "--device"}, args...)...)
		if status != statusUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, stderr %q", args, status, stderr)
		}
		isOneLine(t, stderr)
	}
	c := &Training{Computing: Computing{Device: "cuda:2"}}
	if got := strings.Join(c.shared(), " "); !strings.Contains(got, "--device cuda") || strings.Contains(got, ":2") {
		t.Errorf("what all ranks are started with: %s", got)
	}
}
