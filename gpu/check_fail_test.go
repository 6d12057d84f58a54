package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"peermesh/ops/tensor"
)

// TestCheckNoDevice asks for a device that is not there: nothing else is tried, of a check
// whose steps are those of the zero Trial.
func TestCheckNoDevice(t *testing.T) {
	needFakes(t)
	var names []string
	passed := Check(t.Context(), Trial{Ordinal: 99}, func(v Verdict) {
		names = append(names, v.Step)
		if errors.Is(v.Err, ErrNotTried) == (v.Step == "device") {
			t.Errorf("%s: %v", v.Step, v.Err)
		}
	})
	if all := strings.Join(names, " "); passed || !strings.Contains(all, "copy 64 KiB") || !strings.Contains(all, "copy 64 MiB") {
		t.Errorf("passed: %v; steps %q", passed, names)
	}
}

// TestCheckSteps has steps fail for what is not the driver's: a context that has ended, a
// kernel that the text lacks, a chunk whose bytes change on the way, a member that nobody is.
func TestCheckSteps(t *testing.T) {
	d := opened(t, Config{Chunk: 64 << 10, Depth: 1})
	c := &checking{Trial: Trial{Budget: 1, Most: 64 << 10}, d: d, s: streamed(t, d)}
	gone := errors.New("gone")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := c.order(over); !errors.Is(err, gone) {
		t.Errorf("order, after the end: %v", err)
	}
	if _, err := c.arithmetic(over); !errors.Is(err, gone) {
		t.Errorf("kernels, after the end: %v", err)
	}
	delete(d.kernels.functions, foldName(checkTypes()[0], tensor.Sum))
	if _, err := c.arithmetic(t.Context()); err == nil || !strings.Contains(err.Error(), "gpu: no kernel for sum of ") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	fail(t, EnvCUDA, "spoil", 2*leastCopies, 1) // the last that is read, with so short a budget
	if _, err := c.staging(t.Context()); err == nil || !strings.Contains(err.Error(), "65536 bytes have changed on the way through chunks") {
		t.Errorf("a chunk that changes: %v", err)
	}
	c.Budget = time.Minute // for a communicator that is whole before it is given up, however busy the host is
	fail(t, EnvNCCL, "spoil join", 1, 1)
	if _, err := c.abort(t.Context()); err == nil || !strings.Contains(err.Error(), "a communicator of two has one member") {
		t.Errorf("a communicator of one: %v", err)
	}
}

// TestCheckCloses has the last step find what has been forgotten, and close the rest although
// the communicator does not end as it should.
func TestCheckCloses(t *testing.T) {
	d := opened(t, Config{Chunk: 1024, Depth: 1})
	c := &checking{d: d, s: streamed(t, d)}
	if _, err := c.join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewMemory(8); err != nil {
		t.Fatal(err)
	}
	fail(t, EnvNCCL, "ncclCommAbort", 1, 3)
	_, err := c.close(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.Call != "ncclCommAbort" || !strings.Contains(err.Error(), `gpu: left: ["8 bytes of device memory"]`) {
		t.Errorf("close: %v", err)
	}
	if _, err := d.NewMemory(8); !errors.Is(err, ErrClosed) {
		t.Errorf("the device is open: %v", err)
	}
}

// TestWithoutNCCL is a machine with a GPU alone, in a process of its own, for what is found
// first is kept.
func TestWithoutNCCL(t *testing.T) {
	needFakes(t)
	if os.Getenv("PEERMESH_TEST_NO_NCCL") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWithoutNCCL$")
		again.Env = append(os.Environ(), "PEERMESH_TEST_NO_NCCL=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Setenv(EnvNCCL, "/nowhere/libnccl.so.2")
	if s := Look(); !s.Usable() || len(s.Lacks) != 1 || s.Lacks[0].What != "nccl" || s.Lacks[0].Mend != mendNCCL {
		t.Errorf("%+v", s)
	}
	d := opened(t, Config{Chunk: 1024, Depth: 1})
	if _, err := NewComm(t.Context(), d, UniqueID{}, 0, 1); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a communicator: %v", err)
	}
	all, passed := checked(t.Context(), Trial{Deadline: time.Minute})
	if passed {
		t.Error("the check passed")
	}
	for _, v := range all {
		want, words := error(nil), ""
		switch {
		case v.Step == "nccl join":
			want, words = ErrUnavailable, mendNCCL
		case v.Step == "nccl abort":
			want = ErrUnavailable
		case strings.HasPrefix(v.Step, "nccl "):
			want = ErrNotTried
		}
		if !errors.Is(v.Err, want) || v.Err != nil && !strings.Contains(v.Err.Error(), words) {
			t.Errorf("%s: %v", v.Step, v.Err)
		}
	}
}
