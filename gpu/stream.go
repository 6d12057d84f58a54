package gpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"peermesh/ops/tensor"
)

// Flags of the driver's.
const (
	streamNonBlocking = 1 // no order against the default stream
	eventBlocking     = 1 // a wait gives up the processor
	eventUntimed      = 2
)

// A Stream is a queue of a device's work: what is on one runs in order, what is on
// two may run at once. Its methods queue, and return before the work is done.
type Stream struct {
	d *Device
	h handle
}

// NewStream makes a stream. The caller closes it.
func (d *Device) NewStream() (*Stream, error) { return own(d, d.newStream) }

func (d *Device) newStream() (*Stream, error) {
	s := &Stream{d: d}
	err := d.call("cuStreamCreate", uintptr(unsafe.Pointer(&s.h.value)), streamNonBlocking)
	return s, err
}

// Close frees the stream, after its work.
func (s *Stream) Close() error {
	if s == nil {
		return nil
	}
	s.d.forget(s)
	return s.h.free(func(h uintptr) error {
		return errors.Join(s.d.call("cuStreamSynchronize", h), s.d.call("cuStreamDestroy_v2", h))
	})
}

func (s *Stream) String() string { return "a stream" }

// Sync waits until all is done that has been queued. An error may be that of any
// of it.
func (s *Stream) Sync() error {
	return s.h.use(func(h uintptr) error { return s.d.call("cuStreamSynchronize", h) })
}

// Record has e happen when all is done that has been queued on s.
func (s *Stream) Record(e *Event) error {
	return s.h.use(func(h uintptr) error {
		return e.h.use(func(event uintptr) error { return s.d.call("cuEventRecord", event, h) })
	})
}

// Wait has what is queued on s from now on wait for e, as it was last recorded. The
// host does not wait.
func (s *Stream) Wait(e *Event) error {
	return s.h.use(func(h uintptr) error {
		return e.h.use(func(event uintptr) error { return s.d.call("cuStreamWaitEvent", h, event, 0) })
	})
}

// Hold has what is queued on s from now on wait until done is closed, as that of an
// ops.Work is. The host does not wait. done has to be closed some day, even if what it
// stands for fails, and by nothing that waits for s, or s stands still for ever.
func (s *Stream) Hold(done <-chan struct{}) error {
	return s.h.use(func(h uintptr) error {
		id := holds.put(done)
		err := s.d.call("cuLaunchHostFunc", h, holdAddress(), id)
		if err != nil {
			holds.take(id)
		}
		return err
	})
}

// holds are the channels for which streams wait. The driver carries their numbers.
var holds = channels{waiting: make(map[uintptr]<-chan struct{})}

// holdAddress is a function in C that waits for one of them. The driver calls it on a
// thread of its own.
var holdAddress = sync.OnceValue(func() uintptr {
	return callback(func(id uintptr) { <-holds.take(id) })
})

type channels struct {
	mu      sync.Mutex
	last    uintptr
	waiting map[uintptr]<-chan struct{}
}

func (c *channels) put(done <-chan struct{}) uintptr {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.waiting[c.last] = done
	return c.last
}

func (c *channels) take(id uintptr) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := c.waiting[id]
	delete(c.waiting, id)
	return done
}

// ToHost queues a copy of bytes [off, off+len(p)) of m to the start of p.
func (s *Stream) ToHost(p *Pinned, m *Memory, off int64) error { return s.ToHostN(p, m, off, p.n) }

// ToHostN is ToHost of n bytes.
func (s *Stream) ToHostN(p *Pinned, m *Memory, off int64, n int) error {
	return s.between(p, m, off, n, func(h, host, device uintptr) error {
		return s.d.call("cuMemcpyDtoHAsync_v2", host, device, uintptr(n), h)
	})
}

// ToDevice queues a copy of p to bytes [off, off+len(p)) of m.
func (s *Stream) ToDevice(m *Memory, off int64, p *Pinned) error { return s.ToDeviceN(m, off, p, p.n) }

// ToDeviceN is ToDevice of the first n bytes of p.
func (s *Stream) ToDeviceN(m *Memory, off int64, p *Pinned, n int) error {
	return s.between(p, m, off, n, func(h, host, device uintptr) error {
		return s.d.call("cuMemcpyHtoDAsync_v2", device, host, uintptr(n), h)
	})
}

// between checks a copy of n bytes, whose ends are not freed while it is queued.
func (s *Stream) between(p *Pinned, m *Memory, off int64, n int, queue func(h, host, device uintptr) error) error {
	if n < 0 || n > p.n {
		return &tensor.RangeError{N: int64(n), Size: int64(p.n)}
	}
	if err := m.within(off, int64(n)); err != nil || n == 0 {
		return err
	}
	return s.h.use(func(h uintptr) error {
		return p.h.use(func(host uintptr) error {
			return m.h.use(func(device uintptr) error { return queue(h, host, device+uintptr(off)) })
		})
	})
}

// Copy queues a copy of n bytes within a device's memory, or between two devices'.
func (s *Stream) Copy(dst *Memory, dstOff int64, src *Memory, srcOff, n int64) error {
	if err := errors.Join(dst.within(dstOff, n), src.within(srcOff, n)); err != nil || n == 0 {
		return err
	}
	if dst == src {
		return fmt.Errorf("gpu: copy within one memory")
	}
	return s.h.use(func(h uintptr) error {
		return dst.h.use(func(to uintptr) error {
			return src.h.use(func(from uintptr) error {
				return s.d.call("cuMemcpyDtoDAsync_v2", to+uintptr(dstOff), from+uintptr(srcOff), uintptr(n), h)
			})
		})
	})
}

// An Event is a point in a stream, for which other streams and the host can wait.
// One that was never recorded has happened.
type Event struct {
	d *Device
	h handle
}

// NewEvent makes an event. The caller closes it.
func (d *Device) NewEvent() (*Event, error) { return own(d, d.newEvent) }

func (d *Device) newEvent() (*Event, error) {
	e := &Event{d: d}
	err := d.call("cuEventCreate", uintptr(unsafe.Pointer(&e.h.value)), eventBlocking|eventUntimed)
	return e, err
}

// Close frees the event. Streams that wait for it go on waiting.
func (e *Event) Close() error {
	if e == nil {
		return nil
	}
	e.d.forget(e)
	return e.h.free(func(h uintptr) error { return e.d.call("cuEventDestroy_v2", h) })
}

func (e *Event) String() string { return "an event" }

// Sync waits until the event has happened.
func (e *Event) Sync() error {
	return e.h.use(func(h uintptr) error { return e.d.call("cuEventSynchronize", h) })
}

// Happened reports whether the event has happened. It does not wait.
func (e *Event) Happened() (bool, error) {
	err := e.h.use(func(h uintptr) error { return e.d.call("cuEventQuery", h) })
	var code *Error
	if errors.As(err, &code) && code.Code == cudaNotReady {
		return false, nil
	}
	return err == nil, err
}
