package gpu

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"peermesh/ops/tensor"
)

func TestDevices(t *testing.T) {
	needFakes(t)
	all, err := Devices()
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %v", all, err)
	}
	want := Info{Ordinal: 2, Name: "Fake 2", UUID: all[2].UUID, PCI: "0000:03:00.0", Memory: 256 << 20, Major: 8, Minor: 6}
	if all[2] != want || all[2].UUID == all[1].UUID {
		t.Errorf("%+v, want %+v", all[2], want)
	}
}

// TestConfig refuses what cannot be.
func TestConfig(t *testing.T) {
	needFakes(t)
	for _, c := range []Config{
		{Ordinal: -1}, {Ordinal: 4}, {Chunk: -16}, {Chunk: 24}, {Chunk: 1 << 30}, {Depth: -1}, {Depth: 65},
	} {
		if d, err := Open(c); err == nil {
			t.Errorf("%+v opens %v", c, d)
		}
	}
}

// TestClosed has every method say that it is too late, and every Close be called twice.
func TestClosed(t *testing.T) {
	d := opened(t, Config{Ordinal: 1})
	s, e, p, m := streamed(t, d), evented(t, d), pinnedBytes(t, d, 4), allocated(t, d, 4)
	want := []string{"4 bytes of device memory", "4 bytes of pinned host memory", "a stream", "an event"}
	if got := d.Leaks(); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("leaks: %v", got)
	}
	if err := errors.Join(d.Close(), d.Close(), s.Close(), e.Close(), p.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if len(d.Leaks()) > 0 || p.Bytes() != nil {
		t.Errorf("after Close: %v, %v", d.Leaks(), p.Bytes())
	}
	_, stream := d.NewStream()
	_, event := d.NewEvent()
	_, pinned := d.Pin(1)
	_, memory := d.NewMemory(1)
	_, alloc := d.Alloc(tensor.Int8, 1)
	_, _, room := d.Room()
	_, read := m.ReadAt(make([]byte, 1), 0)
	_, write := m.WriteAt(make([]byte, 1), 0)
	_, happened := e.Happened()
	for i, err := range []error{stream, event, pinned, memory, alloc, room, read, write, happened,
		m.ReduceAt(make([]byte, 1), 0, tensor.Int8, tensor.Sum), m.ScaleAt(0, 1, tensor.Int8, 2), m.DivideAt(0, 1, tensor.Int8, 2),
		m.After(s), s.Sync(), s.Record(e), s.Wait(e), s.Hold(nil), s.ToHost(p, m, 0), s.ToDevice(m, 0, p), e.Sync(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
	if _, err := d.Pin(0); err == nil {
		t.Error("no bytes are pinned")
	}
}

// TestThreads has goroutines use two devices with a driver that is slow to change
// contexts. A call that did not lock its thread would meet the other's context, and the
// fake would not know its handles.
func TestThreads(t *testing.T) {
	devices := openAll(t, Config{Depth: 2, Chunk: 4096}, Config{Ordinal: 1, Depth: 2, Chunk: 4096})
	tell(t, EnvCUDA, "fake_context_delay", 30)
	var all sync.WaitGroup
	for g := range 8 {
		d := devices[g%2]
		all.Go(func() {
			for range 10 {
				m, err := d.NewMemory(16)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = m.WriteAt([]byte{1, 2, 3}, 5)
				if err = errors.Join(err, m.ReduceAt([]byte{1, 2, 3}, 5, tensor.Int8, tensor.Sum), m.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestOpenFails has each call of Open's fail in turn. It leaves nothing behind.
func TestOpenFails(t *testing.T) {
	needFakes(t)
	before := alive(t)
	for _, function := range []string{
		"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute", "cuDeviceGetPCIBusId",
		"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction", "cuStreamCreate", "cuMemHostAlloc",
		"cuEventCreate", "cuMemAlloc_v2",
	} {
		for nth := range 3 {
			fail(t, EnvCUDA, function, nth+1, 999)
			d, err := Open(Config{Depth: 2})
			tell(t, EnvCUDA, "fake_reset")
			if err == nil {
				if err := d.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if nth == 0 {
					t.Errorf("Open does not need %s", function)
				}
				continue
			}
			var e *Error
			if !errors.As(err, &e) || e.Call != function || e.Code != 999 || !strings.Contains(err.Error(), "(cuda 999)") {
				t.Errorf("%s fails: %v", function, err)
			}
		}
	}
	if after := alive(t); after != before {
		t.Errorf("%v: %v alive, before %v", kinds, after, before)
	}
}

// TestCallsFail has each call of an operation fail. It is an error that says which, and
// the device is as good as before.
func TestCallsFail(t *testing.T) {
	d := opened(t, Config{Chunk: 32, Depth: 2})
	s, e, p, m := streamed(t, d), evented(t, d), pinnedBytes(t, d, 4), allocated(t, d, 200)
	bytes := make([]byte, 200)
	fn := tensor.Func("first", func(a, b int8) int8 { return a })
	for _, c := range []struct {
		function string
		call     func() error
	}{
		{"cuMemcpyDtoHAsync_v2", func() error { _, err := m.ReadAt(bytes, 0); return err }},
		{"cuEventRecord", func() error { _, err := m.ReadAt(bytes, 0); return err }},
		{"cuEventSynchronize", func() error { _, err := m.ReadAt(bytes, 0); return err }},
		{"cuMemcpyHtoDAsync_v2", func() error { _, err := m.WriteAt(bytes, 0); return err }},
		{"cuCtxSetCurrent", func() error { _, err := m.WriteAt(bytes, 0); return err }},
		{"cuLaunchKernel", func() error { return m.ReduceAt(bytes, 0, tensor.Int8, tensor.Sum) }},
		{"cuMemcpyHtoDAsync_v2", func() error { return m.ReduceAt(bytes, 0, tensor.Int8, fn) }},
		{"cuLaunchKernel", func() error { return m.ScaleAt(0, 200, tensor.Int8, 2) }},
		{"cuLaunchKernel", func() error { return m.DivideAt(0, 200, tensor.Int8, 2) }},
		{"cuEventCreate", func() error { return m.After(s) }},
		{"cuEventRecord", func() error { return m.After(s) }},
		{"cuEventSynchronize", func() error { return errors.Join(m.After(s), m.ScaleAt(0, 200, tensor.Int8, 1)) }},
		{"cuStreamWaitEvent", func() error { return s.Wait(e) }},
		{"cuStreamSynchronize", s.Sync},
		{"cuEventSynchronize", e.Sync},
		{"cuEventQuery", func() error { _, err := e.Happened(); return err }},
		{"cuMemcpyDtoHAsync_v2", func() error { return s.ToHost(p, m, 0) }},
		{"cuMemsetD8Async", func() error { _, err := d.NewMemory(1); return err }},
		{"cuMemAlloc_v2", func() error { _, err := d.NewMemory(1); return err }},
		{"cuMemGetInfo_v2", func() error { _, _, err := d.Room(); return err }},
	} {
		fail(t, EnvCUDA, c.function, 1, 999)
		err := c.call()
		tell(t, EnvCUDA, "fake_reset")
		var code *Error
		if !errors.As(err, &code) || code.Call != c.function || code.Code != 999 || errors.Is(err, ErrLost) {
			t.Errorf("%s fails: %v", c.function, err)
		}
		if err := c.call(); err != nil {
			t.Errorf("%s, the second time: %v", c.function, err)
		}
	}
	if len(d.up.slots) != 2 || len(d.down.slots) != 2 {
		t.Errorf("%d and %d chunks are free, want 2 each", len(d.up.slots), len(d.down.slots))
	}
	for _, err := range []error{m.ScaleAt(1, 4, tensor.Int32, 2), m.DivideAt(0, 8, 0, 2), m.ScaleAt(196, 8, tensor.Int32, 2)} {
		if err == nil {
			t.Error("a step beyond the memory, or of no elements")
		}
	}
}

// TestLost has work on the device fail after its call, which later calls say.
func TestLost(t *testing.T) {
	for _, function := range []string{"copy", "kernel"} {
		d := opened(t, Config{Chunk: 32, Depth: 2})
		m := allocated(t, d, 100)
		fail(t, EnvCUDA, function, 2, 700)
		err := m.ReduceAt(make([]byte, 100), 0, tensor.Int8, tensor.Sum)
		if !errors.Is(err, ErrLost) || errors.Is(err, ErrOutOfMemory) {
			t.Errorf("a %s fails: %v", function, err)
		}
		if _, err := m.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrLost) {
			t.Errorf("after a %s has failed: %v", function, err)
		}
		tell(t, EnvCUDA, "fake_reset") // for Close to free what the fake counts
	}
}
