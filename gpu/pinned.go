package gpu

import (
	"fmt"
	"unsafe"
)

// hostPortable has memory count as pinned in every context.
const hostPortable = 1

// Pinned is host memory that the system may not move, so that a device copies from
// and to it by itself, at the full rate of the bus. It is not Go's: the collector
// does not see it, and pointers to Go's memory do not belong there.
type Pinned struct {
	d *Device
	h handle
	n int
}

// Pin makes n bytes of pinned memory, n at least 1. The caller closes it. Pinned
// memory is the system's to lack: take little of it.
func (d *Device) Pin(n int) (*Pinned, error) {
	if n < 1 {
		return nil, fmt.Errorf("gpu: %d bytes of pinned memory", n)
	}
	return own(d, func() (*Pinned, error) { return d.pin(n) })
}

func (d *Device) pin(n int) (*Pinned, error) {
	p := &Pinned{d: d, n: n}
	err := d.call("cuMemHostAlloc", uintptr(unsafe.Pointer(&p.h.value)), uintptr(n), hostPortable)
	return p, detail(err, "%d bytes of pinned host memory", n)
}

// Bytes are the memory itself, nil after Close. They must not be used after Close,
// nor while a stream copies to them.
func (p *Pinned) Bytes() []byte {
	p.h.mu.RLock()
	defer p.h.mu.RUnlock()
	if p.h.value == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at(p.h.value)), p.n)
}

// Close frees the memory.
func (p *Pinned) Close() error {
	if p == nil {
		return nil
	}
	p.d.forget(p)
	return p.h.free(func(h uintptr) error { return p.d.call("cuMemFreeHost", h) })
}

func (p *Pinned) String() string { return fmt.Sprintf("%d bytes of pinned host memory", p.n) }
