package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"peermesh/ops/tensor"
)

// swept are the driver's functions that a check's steps call, but for those that free things,
// which a fake that fails does not free; see TestCloseFails for these.
var swept = []string{"cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
	"cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemsetD8Async", "cuEventCreate", "cuEventRecord", "cuEventQuery",
	"cuEventSynchronize", "cuStreamCreate", "cuStreamSynchronize", "cuLaunchHostFunc", "cuLaunchKernel"}

// sweepMost bounds the calls of one function of which each fails once.
const sweepMost = 10

// TestSweep has each call of each function fail that a step of a check makes, one at a time:
// the error names the function, nothing is left, and the step passes afterwards.
func TestSweep(t *testing.T) {
	d := opened(t, Config{Chunk: 4096, Depth: 2})
	c := &checking{Trial: Trial{Deadline: time.Minute, Budget: time.Microsecond, Most: 8192}, d: d, s: streamed(t, d)}
	if _, err := c.join(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context) (string, error){
		"memory":  c.memory,
		"copies":  func(ctx context.Context) (string, error) { return c.copies(ctx, 8192) },
		"staging": c.staging,
		"order":   c.order,
		"kernels": func(context.Context) (string, error) {
			return "", errors.Join(c.compute(tensor.Float32, tensor.Sum), c.compute(tensor.BFloat16, tensor.PremulSum(3)))
		},
		"nccl": func(ctx context.Context) (string, error) {
			return "", c.reduced(ctx, tensor.Float32, tensor.Sum, func(dst, src tensor.Tensor) error {
				return c.comm.AllReduce(ctx, c.s, dst, src, tensor.Sum)
			})
		},
	} {
		sweep(t, c, name, run)
	}
	if err := c.comm.Close(); err != nil {
		t.Error(err)
	}
}

// sweep has each call of a step fail.
func sweep(t *testing.T, c *checking, name string, run func(context.Context) (string, error)) {
	before := alive(t)
	for _, function := range swept {
		for nth := range sweepMost {
			fail(t, EnvCUDA, function, nth+1, 998)
			_, err := run(t.Context())
			tell(t, EnvCUDA, "fake_reset")
			var e *Error
			switch {
			case errors.As(err, &e) && (e.Call != function || e.Code != 998):
				t.Errorf("%s: call %d of %s fails: %v", name, nth+1, function, err)
			case err != nil && e == nil:
				t.Errorf("%s: call %d of %s fails: %v", name, nth+1, function, err)
			}
			if err := c.joined(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := alive(t); after != before {
				t.Fatalf("%s: call %d of %s fails: %v: %v, %v before (%v)", name, nth+1, function, kinds, after, before, err)
			}
			if err == nil {
				break // it makes no more calls of it
			}
		}
	}
	if _, err := run(t.Context()); err != nil {
		t.Errorf("%s: afterwards: %v", name, err)
	}
}

// TestCloseFails has what frees each thing fail, which Close says, and which is gone all the
// same: a second Close is none.
func TestCloseFails(t *testing.T) {
	d := opened(t, Config{Chunk: 1024, Depth: 1})
	for function, create := range map[string]func() (interface{ Close() error }, error){
		"cuMemFree_v2":        func() (interface{ Close() error }, error) { return d.NewMemory(8) },
		"cuMemFreeHost":       func() (interface{ Close() error }, error) { return d.Pin(8) },
		"cuEventDestroy_v2":   func() (interface{ Close() error }, error) { return d.NewEvent() },
		"cuStreamSynchronize": func() (interface{ Close() error }, error) { return d.NewStream() },
		"cuModuleUnload":      func() (interface{ Close() error }, error) { return d.Load(kernelText) },
	} {
		c, err := create()
		if err != nil {
			t.Fatal(err)
		}
		handle := leaked(c)
		fail(t, EnvCUDA, function, 1, 998)
		err = c.Close()
		tell(t, EnvCUDA, "fake_reset")
		var e *Error
		if !errors.As(err, &e) || e.Call != function || e.Code != 998 || len(d.Leaks()) > 0 {
			t.Errorf("%s fails: %v; left: %q", function, err, d.Leaks())
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: the second Close: %v", function, err)
		}
		// The fake has not freed it: this is for the count at the end.
		if function != "cuStreamSynchronize" {
			if err := d.call(function, handle); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []interface{ Close() error }{(*Memory)(nil), (*Pinned)(nil), (*Event)(nil), (*Stream)(nil), (*Module)(nil)} {
		if err := c.Close(); err != nil {
			t.Errorf("%T that is none: %v", c, err)
		}
	}
}

// leaked is the driver's own name of a thing.
func leaked(c any) uintptr {
	switch c := c.(type) {
	case *Memory:
		return c.h.value
	case *Pinned:
		return c.h.value
	case *Event:
		return c.h.value
	case *Stream:
		return c.h.value
	case *Module:
		return c.h.value
	}
	return 0
}

// TestDevicesFail has the driver fail to count its devices, and to describe one.
func TestDevicesFail(t *testing.T) {
	needFakes(t)
	for _, function := range []string{"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceTotalMem_v2",
		"cuDeviceGetAttribute", "cuDeviceGetPCIBusId"} {
		fail(t, EnvCUDA, function, 1, 998)
		_, err := Devices()
		tell(t, EnvCUDA, "fake_reset")
		var e *Error
		if !errors.As(err, &e) || e.Call != function {
			t.Errorf("%s fails: %v", function, err)
		}
	}
	fail(t, EnvCUDA, "spoil count", 1, 1)
	if _, err := Devices(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "has no device") {
		t.Errorf("no devices: %v", err)
	}
	fail(t, EnvCUDA, "cuDriverGetVersion", 1, 998)
	fail(t, EnvCUDA, "cuDeviceGetCount", 1, 998)
	s := Look()
	tell(t, EnvCUDA, "fake_reset")
	if len(s.Lacks) != 2 || !strings.Contains(s.Lacks[0].Why+s.Lacks[1].Why, "cuDriverGetVersion") || s.Usable() {
		t.Errorf("neither a version nor devices: %+v", s)
	}
}

// TestAcrossStepsFail has each step of an all-reduce across hosts fail on a member.
func TestAcrossStepsFail(t *testing.T) {
	for _, c := range []struct {
		library, function string
	}{{EnvNCCL, "ncclReduce"}, {EnvCUDA, "cuEventCreate"}, {EnvNCCL, "ncclBroadcast"}} {
		together(t, 1, func(ctx context.Context, m member) error {
			x, err := m.filled(tensor.Float32, 4, 1)
			if err != nil {
				return err
			}
			fail(t, c.library, c.function, 1, 3)
			err = m.AllReduceAcross(ctx, m.s, x, tensor.Sum, 1, func(tensor.Tensor) error { return nil })
			var e *Error
			if !errors.As(err, &e) || e.Call != c.function {
				t.Errorf("%s fails: %v", c.function, err)
			}
			return m.Abort()
		})
	}
}
