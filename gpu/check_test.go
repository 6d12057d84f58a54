package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/ops/tensor"
)

// checked is the verdicts of a check that is short.
func checked(ctx context.Context, t Trial) (all []Verdict, passed bool) {
	if t.Budget == 0 {
		t.Budget = 100 * time.Microsecond
	}
	if t.Most == 0 {
		t.Most = 64 << 10
	}
	passed = Check(ctx, t, func(v Verdict) { all = append(all, v) })
	return all, passed
}

// TestCheck passes every step on the fakes, and leaves nothing.
func TestCheck(t *testing.T) {
	needFakes(t)
	before, comms := alive(t), tell(t, EnvNCCL, "fake_alive")
	all, passed := checked(t.Context(), Trial{Ordinal: 1, Most: 4 << 20})
	for _, v := range all {
		t.Logf("%-20s %8v  %s %v", v.Step, v.Took.Round(time.Microsecond), v.Note, v.Err)
	}
	if !passed || len(all) != len(steps(1)) {
		t.Errorf("%d steps, passed: %v", len(all), passed)
	}
	for what, words := range map[string]string{
		"device": "Fake 1 (device 1), capability 8.6", "copy 4 KiB": "pageable ", "copy 4 MiB": "GB/s", "kernels": "reductions of 2003 elements",
		"staging": "by 4 chunks of 1 MiB", "nccl join": "NCCL 2.28.9", "nccl all_reduce": "reductions", "nccl abort": "given up",
	} {
		i := slices.IndexFunc(all, func(v Verdict) bool { return v.Step == what })
		if i < 0 || !strings.Contains(all[i].Note, words) {
			t.Errorf("no %q of step %q", words, what)
		}
	}
	if after := alive(t); after != before || tell(t, EnvNCCL, "fake_alive") != comms {
		t.Errorf("%v: %v are left, %v were there", kinds, after, before)
	}
}

// TestCheckFails has a call of each step fail, several of them in one check, which goes on
// with those that do not need it, and leaves nothing.
func TestCheckFails(t *testing.T) {
	needFakes(t)
	before := alive(t)
	type failing struct {
		function  string
		nth, code int
		step      string // that fails by it
	}
	for _, round := range [][]failing{
		{{"cuDevicePrimaryCtxRetain", 1, 2, "device"}},
		{{"cuStreamCreate", 3, 2, "device"}},
		{{"copy", 1, 719, "memory"}},                                         // the device is lost
		{{"cuMemGetInfo_v2", 1, 1, "device"}, {"kernel", 1, 700, "kernels"}}, // likewise
		{{"cuMemAlloc_v2", 1, 2, "memory"}, {"cuMemHostAlloc", 9, 2, "copy 64 B"}, {"cuLaunchHostFunc", 1, 1, "order"},
			{"cuModuleLoadData", 1, 221, "kernels"}, {"cuDevicePrimaryCtxRelease_v2", 1, 1, "close"}},
		{{"cuMemcpyDtoHAsync_v2", 1, 1, "memory"}, {"cuMemcpyHtoD_v2", 1, 1, "copy 64 B"}, {"cuMemcpyDtoH_v2", 1, 1, "copy 256 B"},
			{"cuEventQuery", 1, 1, "order"}, {"cuLaunchKernel", 1, 1, "kernels"}},
		{{"ncclGetUniqueId", 1, 3, "nccl join"}, {"ncclGetUniqueId", 2, 3, "nccl abort"}},
		{{"ncclCommInitRankScalable", 1, 3, "nccl join"}, {"ncclCommInitRankScalable", 2, 3, "nccl abort"}},
		{{"ncclAllReduce", 1, 3, "nccl all_reduce"}, {"ncclReduce", 1, 3, "nccl reduce"}, {"ncclReduceScatter", 1, 3, "nccl reduce_scatter"},
			{"ncclAllGather", 1, 3, "nccl all_gather"}, {"ncclBroadcast", 1, 3, "nccl broadcast"}, {"ncclSend", 1, 3, "nccl send, recv"},
			{"ncclCommFinalize", 1, 3, "nccl part"}},
	} {
		for _, f := range round {
			library := EnvCUDA
			if strings.HasPrefix(f.function, "nccl") {
				library = EnvNCCL
			}
			fail(t, library, f.function, f.nth, f.code)
		}
		all, passed := checked(t.Context(), Trial{})
		tell(t, EnvCUDA, "fake_reset")
		if passed {
			t.Errorf("%v: passed", round)
		}
		for _, v := range all {
			i := slices.IndexFunc(round, func(f failing) bool { return f.step == v.Step })
			var e *Error
			switch {
			case i < 0 && v.Step == "close" && errors.Is(v.Err, ErrLost):
			case i < 0 && v.Err != nil && !errors.Is(v.Err, ErrNotTried):
				t.Errorf("%v: %s: %v", round, v.Step, v.Err)
			case i >= 0 && (!errors.As(v.Err, &e) || e.Code != round[i].code):
				t.Errorf("%v: %s: %v", round[i], v.Step, v.Err)
			}
		}
		last := all[len(all)-2] // before the device is closed
		if over := round[0].step == "device" && round[0].nth != 1 || round[0].code == 719 || len(round) == 2 && round[1].code == 700; over && !errors.Is(last.Err, ErrNotTried) {
			t.Errorf("%v: %s: %v", round, last.Step, last.Err)
		}
	}
	if after := alive(t); after[0] != before[0] || after[1] != before[1] || after[2] != before[2] {
		t.Errorf("%v: %v are left, %v were there", kinds, after, before)
	}
}

// TestCheckFinds has the device do wrong what it says it has done.
func TestCheckFinds(t *testing.T) {
	needFakes(t)
	before := alive(t)
	for _, c := range []struct {
		in, what    string
		nth         int
		step, words string
	}{
		{EnvCUDA, "spoil", 1, "memory", "new memory of 1048579 bytes is read otherwise"},
		{EnvCUDA, "spoil", 3, "memory", "what was written of 1048579 bytes is read otherwise"},
		{EnvCUDA, "spoil", 7, "copy 64 B", "64 bytes have changed on the way to the device and back"},
		{EnvCUDA, "spoil kernel", 5, "kernels", "on the device"},
		{EnvNCCL, "spoil nccl", 1, "nccl all_reduce", "NCCL's result is another"},
		{EnvCUDA, "spoil event", 1, "order", "a stream has gone on that was held"},
		{EnvNCCL, "spoil nccl", 61, "nccl reduce", "NCCL's result is another"},
	} {
		fail(t, c.in, c.what, c.nth, 1)
		all, passed := checked(t.Context(), Trial{})
		tell(t, EnvCUDA, "fake_reset")
		i := slices.IndexFunc(all, func(v Verdict) bool { return v.Err != nil })
		if passed || i < 0 || all[i].Step != c.step || !strings.Contains(all[i].Err.Error(), c.words) {
			t.Errorf("%s at the %d. time: %+v, want it of %s", c.what, c.nth, all, c.step)
		}
	}
	if after := alive(t); after != before {
		t.Errorf("%v: %v are left, %v were there", kinds, after, before)
	}
}

// TestCheckInterrupted ends with its context.
func TestCheckInterrupted(t *testing.T) {
	needFakes(t)
	before := alive(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var all []Verdict
	passed := Check(ctx, Trial{Budget: time.Microsecond, Most: 1 << 10}, func(v Verdict) {
		if all = append(all, v); len(all) == 4 {
			cancel(gone)
		}
	})
	if passed || all[3].Err != nil || !errors.Is(all[4].Err, gone) || !errors.Is(all[5].Err, ErrNotTried) {
		t.Errorf("%+v", all)
	}
	if after := alive(t); after != before {
		t.Errorf("%v: %v are left, %v were there", kinds, after, before)
	}
}

// TestCheckHangs has a call not return in time, in a process of its own.
func TestCheckHangs(t *testing.T) {
	needFakes(t)
	if os.Getenv("PEERMESH_TEST_HANG") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckHangs$")
		again.Env = append(os.Environ(), "PEERMESH_TEST_HANG=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	tell(t, EnvCUDA, "fake_stall", 1)
	all, passed := checked(t.Context(), Trial{Deadline: 500 * time.Millisecond})
	tell(t, EnvCUDA, "fake_stall", 0) // the call returns after all, and its goroutine ends
	i := slices.IndexFunc(all, func(v Verdict) bool { return errors.Is(v.Err, errHung) })
	if passed || i < 0 || !errors.Is(all[len(all)-1].Err, ErrNotTried) || all[i].Took < time.Second {
		t.Errorf("%+v", all)
	}
}

// TestCheckWithoutGPU has nothing to try.
func TestCheckWithoutGPU(t *testing.T) {
	if os.Getenv("PEERMESH_TEST_NONE") != "" {
		all, passed := checked(t.Context(), Trial{})
		if passed || !errors.Is(all[0].Err, ErrUnavailable) || !errors.Is(all[1].Err, ErrNotTried) || !errors.Is(all[len(all)-1].Err, ErrNotTried) {
			t.Errorf("%+v", all)
		}
		return
	}
	needFakes(t)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckWithoutGPU$")
	again.Env = append(os.Environ(), "PEERMESH_TEST_NONE=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSameBits tells NaN from numbers, and other bits from the same.
func TestSameBits(t *testing.T) {
	for _, c := range []struct {
		t         tensor.DType
		got, want []byte
		same      bool
	}{
		{tensor.Float32, []byte{0, 0, 0xc0, 0x7f}, []byte{1, 0, 0x80, 0xff}, true},
		{tensor.Float32, []byte{0, 0, 0x80, 0x7f}, []byte{1, 0, 0x80, 0x7f}, false}, // infinity
		{tensor.Float16, []byte{1, 0x7c}, []byte{0, 0xfe}, true},
		{tensor.BFloat16, []byte{0x81, 0x7f}, []byte{0xc0, 0xff}, true},
		{tensor.BFloat16, []byte{0x80, 0x7f}, []byte{0xc0, 0xff}, false},
		{tensor.Float64, []byte{1, 0, 0, 0, 0, 0, 0xf0, 0x7f}, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0xff}, true},
		{tensor.Float64, []byte{0, 0, 0, 0, 0, 0, 0, 0}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, false},
		{tensor.Int32, []byte{0, 0, 0xc0, 0x7f}, []byte{1, 0, 0x80, 0xff}, false},
	} {
		if err := sameBits(c.got, c.want, c.t); (err == nil) != c.same {
			t.Errorf("%v %x and %x: %v", c.t, c.got, c.want, err)
		}
	}
}
