package main

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"
)

// An outcome is the last event of a run that reports in JSON.
type outcome struct {
	Event string
	Loss  float64
	Hash  string `json:"params_hash"`
}

// TestDevice trains on a device as on the CPU: alone, as a launch of two ranks that share out
// what devices there are, and from a checkpoint that the CPU has made.
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
	if two := run("launch", "-n", "2", "--steps", "2", "--device", "cuda"); two.Hash == "" || two.Loss == 0 {
		t.Errorf("two ranks: %+v", two)
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
		`--device is "tpu"`:             {"tpu"},
		`--device is "cuda:-1"`:         {"cuda:-1"},
		"--device is for --net convnet": {"cuda", "--net", "tutorial"},
		"--compress is for --device":    {"cuda", "--compress", "int8"},
		"--method is for --device cpu":  {"cuda:1", "--method", "diloco"},
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
