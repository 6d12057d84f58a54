package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"peermesh/gpu"
)

// fakeGPU builds the libraries that stand in for a driver and for NCCL, and returns the
// environment that has them found.
func fakeGPU(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no fake libraries: no cc, or not Linux")
	}
	var env []string
	for name, variable := range map[string]string{"cuda": gpu.EnvCUDA, "nccl": gpu.EnvNCCL} {
		path := filepath.Join(t.TempDir(), "lib"+name+".so")
		source := filepath.Join("..", "..", "gpu", "testdata", "fake", name+".c")
		out, err := exec.CommandContext(t.Context(), "cc", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden", "-o", path, source, "-lpthread", "-ldl", "-lm").CombinedOutput()
		if err != nil {
			t.Fatalf("cc: %v\n%s", err, out)
		}
		env = append(env, variable+"="+path)
	}
	return env
}

// noLibraries is an environment in which there are none.
var noLibraries = []string{gpu.EnvCUDA + "=/nowhere/libcuda.so.1", gpu.EnvNCCL + "=/nowhere/libnccl.so.2"}

// with runs peer in a process of its own, with more environment.
func with(t *testing.T, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := peerCommand(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestGPUReport has what there is, and what to do where there is nothing.
func TestGPUReport(t *testing.T) {
	env := fakeGPU(t)
	status, stdout, stderr := with(t, env, "gpu")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "device 0  Fake 0, 0.2 GiB, compute capability 8.6, bus 0000:01:00.0") ||
		!strings.Contains(stdout, "for CUDA 12.4") || !strings.Contains(stdout, "version 2.28.9") {
		t.Errorf("status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	status, stdout, _ = with(t, env, "gpu", "--json")
	var s gpu.Survey
	if err := json.Unmarshal([]byte(stdout), &s); status != 0 || err != nil || len(s.Devices) != 4 || !s.Usable() {
		t.Errorf("status %d, %v: %s", status, err, stdout)
	}
	status, stdout, stderr = with(t, append(env, "FAKE_FAIL=cuInit 1 100"), "gpu")
	if status != statusNoGPU || !strings.Contains(stdout, "nvidia-smi has to list a device") || !strings.Contains(stderr, "cuInit") {
		t.Errorf("a driver without a device: status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	isOneLine(t, stderr)
}

// TestNoGPU says so, with status 3.
func TestNoGPU(t *testing.T) {
	for _, args := range [][]string{{"gpu"}, {"gpu", "report"}, {"gpu", "check"}} {
		status, stdout, stderr := with(t, noLibraries, args...)
		if status != statusNoGPU || !strings.HasPrefix(stderr, "peer: no GPU can be used here: gpu: not available") || !strings.Contains(stdout, "install NVIDIA's driver") {
			t.Errorf("%q: status %d, stderr %q, stdout:\n%s", args, status, stderr, stdout)
		}
		isOneLine(t, stderr)
		status, stdout, _ = with(t, noLibraries, append(args, "--json")...)
		var s gpu.Survey
		if err := json.Unmarshal([]byte(stdout), &s); status != statusNoGPU || err != nil || len(s.Lacks) != 1 {
			t.Errorf("%q --json: status %d, %v: %s", args, status, err, stdout)
		}
	}
}

// gpuRows are a check's, by step.
func gpuRows(t *testing.T, stdout string) map[string]gpuRow {
	t.Helper()
	all := make(map[string]gpuRow)
	for line := range strings.Lines(stdout) {
		var r gpuRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		all[r.Step] = r
	}
	return all
}

// TestGPUCheck passes on the fakes, two processes on one device among the rest.
func TestGPUCheck(t *testing.T) {
	env := fakeGPU(t)
	status, stdout, stderr := with(t, env, "gpu", "check", "--device", "2", "--bytes", "256KiB", "--budget", "1ms")
	for _, part := range []string{"step                 verdict        time\n", "\ndevice               ok ", "Fake 2 (device 2)", "\ncopy 256 KiB         ok ",
		"\nkernels              ok ", "\nnccl abort           ok ", "\ntraining             ok ", "2 steps of the ConvNet as on the host, off by at most ", "\ntwo processes        ok ", "all_reduce of 256KiB on the device ", "sums right\n"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("no %q", part)
		}
	}
	if status != 0 || stderr != "" || strings.Contains(stdout, "FAILED") {
		t.Errorf("status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
}

// TestGPUCheckFails has a step fail in this process, a step in the two others, and the
// device itself.
func TestGPUCheckFails(t *testing.T) {
	env := fakeGPU(t)
	for _, c := range []struct{ fail, step, word string }{
		{"ncclBroadcast 1 3", "nccl broadcast", "ncclBroadcast"},
		{"cuModuleLoadData 3 209", trainStep, "cuModuleLoadData"},
		{"cuDevicePrimaryCtxRelease_v2 1 1", "close", "cuDevicePrimaryCtxRelease_v2"},
		{"cuDeviceGetCount 1 999", "", ""}, // of what is asked before the check, which goes on
		{"cuDevicePrimaryCtxRetain 1 2", "device", "FAKE_ERROR_2"},
	} {
		status, stdout, stderr := with(t, append(env, "FAKE_FAIL="+c.fail), "gpu", "check", "--bytes", "4KiB", "--budget", "1ms", "--json")
		all := gpuRows(t, stdout)
		if c.step == "" {
			if !all["device"].Passed {
				t.Errorf("%s:\n%s", c.fail, stdout)
			}
			continue
		}
		if r := all[c.step]; status != statusFailed || r.Passed || !strings.Contains(r.Error, c.word) || !strings.Contains(stderr, c.step) {
			t.Errorf("%s: status %d, stderr %q, stdout:\n%s", c.fail, status, stderr, stdout)
		}
	}
}

// TestGPUPairFails has the two processes run out of memory: the check says so, with the
// sizes. Each process is told of the same failure, of which the fifth allocation is the
// first that is not the device's own.
func TestGPUPairFails(t *testing.T) {
	env := append(fakeGPU(t), "FAKE_FAIL=cuMemAlloc_v2 5 2")
	status, stdout, stderr := with(t, env, "gpu", "check", "--bytes", "64KiB", "--budget", "1ms", "--json")
	r := gpuRows(t, stdout)[pairStep]
	if status != statusFailed || r.Passed || !strings.Contains(stderr, "65536 bytes, of ") || !strings.Contains(r.Error, "failed first") {
		t.Errorf("status %d, stderr %q, %+v", status, stderr, r)
	}
}

func TestGPUUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--device is -1":  {"--device", "-1"},
		"--bytes is 4GB":  {"--bytes", "4GB"},
		"--bytes is 5KiB": {"--bytes", "5KiB"},
	} {
		status, _, stderr := in(append([]string{"gpu", "check"}, args...)...)
		if status != statusUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, stderr %q", args, status, stderr)
		}
	}
	if os.Getenv(asPeer) == "" {
		if status, _, stderr := in("gpu-pair"); status == 0 || stderr == "" {
			t.Errorf("a process of a pair alone: status %d, %q", status, stderr)
		}
	}
}

// TestGPUTable prints verdicts of all kinds.
func TestGPUTable(t *testing.T) {
	var b strings.Builder
	table := &gpuTable{w: &b}
	for _, v := range []gpu.Verdict{
		{Step: "device", Took: 1500_000, Note: "a card"},
		{Step: "memory", Took: 2, Err: errors.New("gpu: bad\nvery")},
		{Step: "order", Err: gpu.ErrNotTried},
	} {
		table.row(v)
	}
	want := `step                 verdict        time
device               ok          1.50 ms  a card
memory               FAILED         0 ns  bad
                                          very
order                not tried      0 ns
`
	if b.String() != want || !table.opened || table.verdict() == nil || table.verdict().Error() != "2 of 3 steps failed, the first of them: memory" {
		t.Errorf("%v\n%s\nwant\n%s", table.verdict(), b.String(), want)
	}
}
