package gpu

import (
	"errors"
	"sync"
	"unsafe"
)

// Pins is pinned memory by the slice, for code that has not heard of devices: it is the
// Memory of a loader of package peermesh/trainer/data, whose batches a Stream then copies to
// the device at the full rate of the bus. Its methods may be called by several goroutines.
type Pins struct {
	d *Device

	mu  sync.Mutex
	out map[*byte]*Pinned // by their first byte
}

// errNotPinned is about a slice that is none of a Pins.
var errNotPinned = errors.New("gpu: memory that was not pinned here, or has been freed")

// Pins makes pinned memory as it is asked for. What is not freed ends with the device.
func (d *Device) Pins() *Pins { return &Pins{d: d, out: make(map[*byte]*Pinned)} }

// Alloc is n bytes, at least 1, aligned for any element.
func (p *Pins) Alloc(n int) ([]byte, error) {
	pin, err := p.d.Pin(n)
	if err != nil {
		return nil, err
	}
	b := pin.Bytes()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[unsafe.SliceData(b)] = pin
	return b, nil
}

// Free frees what Alloc has given.
func (p *Pins) Free(b []byte) error {
	pin, err := p.Pinned(b)
	if err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.out, unsafe.SliceData(b))
	p.mu.Unlock()
	return pin.Close()
}

// Pinned is the memory that a slice begins with, for a Stream's copies.
func (p *Pins) Pinned(b []byte) (*Pinned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pin, ok := p.out[unsafe.SliceData(b)]
	if !ok {
		return nil, errNotPinned
	}
	return pin, nil
}
