package gpu

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"peermesh/ops/tensor"
)

// TestStream copies down, across and up again on one stream.
func TestStream(t *testing.T) {
	d := opened(t, Config{})
	s, p, e := streamed(t, d), pinnedBytes(t, d, 64), evented(t, d)
	a, b := allocated(t, d, 100), allocated(t, d, 100)
	for i := range p.Bytes() {
		p.Bytes()[i] = byte(i)
	}
	err := errors.Join(s.ToDevice(a, 10, p), s.Copy(b, 20, a, 10, 64), s.Record(e), e.Sync())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(p.Bytes())
	clear(p.Bytes())
	if err := errors.Join(s.ToHost(p, b, 20), s.Sync()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.Bytes(), want) {
		t.Errorf("%x came back, want %x", p.Bytes(), want)
	}
	var r *tensor.RangeError
	for _, err := range []error{s.ToDevice(a, 37, p), s.ToHost(p, a, -1), s.Copy(a, 0, b, 50, 51), s.Copy(a, 100, b, 0, 1)} {
		if !errors.As(err, &r) {
			t.Errorf("out of range: %v", err)
		}
	}
	if err := s.Copy(a, 0, a, 50, 10); err == nil {
		t.Error("a memory is copied to itself")
	}
	if err := s.Copy(a, 100, b, 0, 0); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

func streamed(t testing.TB, d *Device) *Stream {
	t.Helper()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func evented(t testing.TB, d *Device) *Event {
	t.Helper()
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func pinnedBytes(t testing.TB, d *Device, n int) *Pinned {
	t.Helper()
	p, err := d.Pin(n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHold has a stream wait for a channel, and another for the stream, while the host
// goes on.
func TestHold(t *testing.T) {
	d := opened(t, Config{})
	s, other := streamed(t, d), streamed(t, d)
	held, behind := evented(t, d), evented(t, d)
	done := make(chan struct{})
	err := errors.Join(s.Hold(done), s.Record(held), other.Wait(held), other.Record(behind))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Event{held, behind} {
		if happened, err := e.Happened(); happened || err != nil {
			t.Errorf("before the channel is closed: %v, %v", happened, err)
		}
	}
	close(done)
	if err := errors.Join(behind.Sync(), other.Sync()); err != nil {
		t.Fatal(err)
	}
	if happened, err := held.Happened(); !happened || err != nil {
		t.Errorf("after: %v, %v", happened, err)
	}
	fail(t, EnvCUDA, "cuLaunchHostFunc", 1, 1)
	if err := s.Hold(done); err == nil {
		t.Error("a hold that failed is none")
	}
	if len(holds.waiting) != 0 {
		t.Errorf("%d channels are kept", len(holds.waiting))
	}
}

// TestAfter has memory wait for what a stream has yet to put there, and the stream for
// the reader.
func TestAfter(t *testing.T) {
	d := opened(t, Config{})
	s, p, m := streamed(t, d), pinnedBytes(t, d, 8), allocated(t, d, 8)
	copy(p.Bytes(), "gradient")
	compute, reduced := make(chan struct{}), make(chan struct{})
	if err := errors.Join(s.Hold(compute), s.ToDevice(m, 0, p), m.After(s), s.Hold(reduced), s.ToHost(p, m, 0)); err != nil {
		t.Fatal(err)
	}
	var got [8]byte
	var reader sync.WaitGroup
	reader.Go(func() {
		_, err := m.ReadAt(got[:], 0)
		if err = errors.Join(err, m.ReduceAt([]byte{1}, 0, tensor.Uint8, tensor.Sum)); err != nil {
			t.Error(err)
		}
		close(reduced)
	})
	close(compute)
	reader.Wait()
	if err := s.Sync(); err != nil || string(got[:]) != "gradient" || string(p.Bytes()) != "hradient" {
		t.Errorf("%q was read, and %q left: %v", got, p.Bytes(), err)
	}
	for i := range maxAfter + 1 {
		if err := m.After(streamed(t, d)); (err != nil) != (i == maxAfter) {
			t.Errorf("after %d streams: %v", i+1, err)
		}
	}
	if err := m.ScaleAt(0, 1, tensor.Uint8, 1); err != nil || len(m.queue.turns) != 0 {
		t.Errorf("%d streams are waited for: %v", len(m.queue.turns), err)
	}
	if err := errors.Join(s.Close(), m.After(streamed(t, d))); err != nil { // which Close forgets
		t.Fatal(err)
	}
	if err := m.After(s); !errors.Is(err, ErrClosed) {
		t.Errorf("after a closed stream: %v", err)
	}
}

// TestAfterFails has the driver not free the event of a stream that memory has waited for,
// which is not waited for again; nor is one that another goroutine has dropped.
func TestAfterFails(t *testing.T) {
	d := opened(t, Config{Chunk: 1024, Depth: 1})
	s, m := streamed(t, d), allocated(t, d, 8)
	if err := m.After(s); err != nil {
		t.Fatal(err)
	}
	dropped := m.queue.turns[0]
	event := dropped.event.h.value
	fail(t, EnvCUDA, "cuEventDestroy_v2", 1, 998)
	var e *Error
	if _, err := m.ReadAt(make([]byte, 8), 0); !errors.As(err, &e) || e.Call != "cuEventDestroy_v2" || len(m.queue.turns) != 0 {
		t.Errorf("%v; %d streams are waited for", err, len(m.queue.turns))
	}
	if err := errors.Join(d.call("cuEventDestroy_v2", event), m.queue.drop(dropped)); err != nil {
		t.Error(err)
	}
	if _, err := m.ReadAt(make([]byte, 8), 0); err != nil {
		t.Error(err)
	}
}
