package gpu

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"peermesh/ops/tensor"
)

// Memory is a device's memory, and a tensor.Memory. Each of its methods returns when
// what it says is done: the bytes are there, for the host and for any stream.
// Calls on disjoint ranges may be made at the same time, and share the device's chunks.
type Memory struct {
	d *Device
	h handle
	n int64

	queue queue
}

var _ tensor.Memory = (*Memory)(nil)
var _ tensor.Stepper = (*Memory)(nil)

// NewMemory makes n bytes of zeros on the device, at an address that suits every
// element type. The caller closes it.
func (d *Device) NewMemory(n int64) (*Memory, error) {
	if n < 0 {
		return nil, fmt.Errorf("gpu: %d bytes of device memory", n)
	}
	return own(d, func() (*Memory, error) { return d.newMemory(n) })
}

// Alloc is a tensor of zeros on the device, what tensor.New is on the host, and
// panics where that does. Its Memory is a *Memory, which the caller closes.
func (d *Device) Alloc(t tensor.DType, shape ...int) (tensor.Tensor, error) {
	x := tensor.In(nil, t, shape...)
	m, err := d.NewMemory(x.Bytes())
	if err != nil {
		return tensor.Tensor{}, err
	}
	return tensor.In(m, t, shape...), nil
}

func (d *Device) newMemory(n int64) (*Memory, error) {
	m := &Memory{d: d, n: n}
	size := max(n, 1) // the driver has no memory of no bytes
	if err := d.call("cuMemAlloc_v2", uintptr(unsafe.Pointer(&m.h.value)), uintptr(size)); err != nil {
		return nil, d.noRoom(err, size)
	}
	s := d.up.stream
	err := errors.Join(
		s.h.use(func(h uintptr) error { return d.call("cuMemsetD8Async", m.h.value, 0, uintptr(size), h) }),
		s.Sync())
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// noRoom says of memory that could not be had how much there was.
func (d *Device) noRoom(err error, n int64) error {
	if !errors.Is(err, ErrOutOfMemory) {
		return detail(err, "%d bytes", n)
	}
	var free, total int64
	if e := d.call("cuMemGetInfo_v2", uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))); e != nil {
		return detail(err, "%d bytes on %v", n, d)
	}
	return detail(err, "%d bytes, of %d free and %d in all on %v", n, free, total, d)
}

// detail adds to an error of the driver's what was asked for.
func detail(err error, format string, args ...any) error {
	var e *Error
	if errors.As(err, &e) {
		e.Detail = fmt.Sprintf(format, args...)
	}
	return err
}

// Close frees the memory. It waits for calls that use it.
func (m *Memory) Close() error {
	if m == nil {
		return nil
	}
	m.d.forget(m)
	return m.h.free(func(h uintptr) error { return errors.Join(m.queue.close(), m.d.call("cuMemFree_v2", h)) })
}

func (m *Memory) String() string { return fmt.Sprintf("%d bytes of device memory", m.n) }

// Len is the size in bytes.
func (m *Memory) Len() int64 { return m.n }

// Device is the one that the memory is on.
func (m *Memory) Device() *Device { return m.d }

// within checks that [off, off+n) lies within the memory, without the sum.
func (m *Memory) within(off, n int64) error {
	if off < 0 || n < 0 || off > m.n || n > m.n-off {
		return &tensor.RangeError{Off: off, N: n, Size: m.n}
	}
	return nil
}

// use calls f with the address, after the streams that m waits for.
func (m *Memory) use(f func(base uintptr) error) error {
	return m.h.use(func(base uintptr) error {
		if err := m.queue.wait(); err != nil {
			return err
		}
		return f(base)
	})
}

// ReadAt copies bytes [off, off+len(p)) to p, through pinned chunks.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	if err := m.within(off, int64(len(p))); err != nil || len(p) == 0 {
		return 0, err
	}
	err := m.use(func(base uintptr) error {
		return m.d.down.carry(len(p),
			func(s *slot, i, n int) error { return m.d.down.fetch(s, base+uintptr(off)+uintptr(i), n) },
			func(s *slot, i, n int) error { copy(p[i:i+n], s.bytes); return nil })
	})
	return moved(len(p), err)
}

// WriteAt copies p to bytes [off, off+len(p)), through pinned chunks.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	if err := m.within(off, int64(len(p))); err != nil || len(p) == 0 {
		return 0, err
	}
	err := m.use(func(base uintptr) error {
		return m.d.up.carry(len(p), func(s *slot, i, n int) error {
			copy(s.bytes, p[i:i+n])
			return m.d.up.push(base+uintptr(off)+uintptr(i), s, n)
		}, nil)
	})
	return moved(len(p), err)
}

// moved is what a copy of n bytes returns: nothing is known of one that failed.
func moved(n int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return n, nil
}

// ReduceAt folds p into bytes [off, off+len(p)): p goes through pinned chunks to the
// device, which computes. Where it has no kernel, the host computes, and chunks of
// the memory come and go. The bits are the same.
func (m *Memory) ReduceAt(p []byte, off int64, t tensor.DType, op tensor.Op) error {
	// What is wrong with the arguments is for the host's memory to say.
	if err := tensor.Host(nil).ReduceAt(nil, 0, t, op); err != nil {
		return err
	}
	if size := t.Size(); len(p)%size != 0 || off%int64(size) != 0 {
		return fmt.Errorf("gpu: reduce of %d bytes at %d cuts a %v in two", len(p), off, t)
	}
	if err := m.within(off, int64(len(p))); err != nil || len(p) == 0 {
		return err
	}
	f, onDevice := m.d.kernels.fold(t, op)
	return m.use(func(base uintptr) error {
		base += uintptr(off)
		if !onDevice {
			return m.d.up.onHost(base, len(p), func(q []byte, i int) error {
				return tensor.Host(q).ReduceAt(p[i:i+len(q)], 0, t, op)
			})
		}
		return m.d.up.carry(len(p), func(s *slot, i, n int) error {
			copy(s.bytes, p[i:i+n])
			return errors.Join(m.d.up.push(s.scratch, s, n),
				m.d.up.launch(f, base+uintptr(i), uint64(s.scratch), n/t.Size()))
		}, nil)
	})
}

// ScaleAt multiplies the elements of bytes [off, off+n) by a factor on the device,
// as tensor.PremulSum does before a fold.
func (m *Memory) ScaleAt(off, n int64, t tensor.DType, factor float64) error {
	return m.step(off, n, t, "scale", operand(t, factor, int64(factor), uint64(factor)), func(p tensor.Tensor) error {
		return tensor.PremulSum(factor).Before(p)
	})
}

// DivideAt divides the elements of bytes [off, off+n) by a number of ranks on the
// device, as tensor.Avg does after a fold.
func (m *Memory) DivideAt(off, n int64, t tensor.DType, by int) error {
	return m.step(off, n, t, "divide", operand(t, float64(by), int64(by), uint64(by)), func(p tensor.Tensor) error {
		return tensor.Avg.After(p, by)
	})
}

// operand is the number in the bits of the type in which elements of type t are
// computed.
func operand(t tensor.DType, f float64, i int64, u uint64) uint64 {
	switch t {
	case tensor.Float64:
		return math.Float64bits(f)
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return uint64(math.Float32bits(float32(f)))
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return uint64(i)
	}
	return u
}

// step changes elements by a kernel, or else on the host.
func (m *Memory) step(off, n int64, t tensor.DType, name string, operand uint64, host func(tensor.Tensor) error) error {
	size := int64(t.Size())
	if size == 0 || n%size != 0 || off%size != 0 {
		return fmt.Errorf("gpu: %s of %d bytes at %d of %v", name, n, off, t)
	}
	if err := m.within(off, n); err != nil || n == 0 {
		return err
	}
	f, onDevice := m.d.kernels.step(t, name)
	return m.use(func(base uintptr) error {
		base += uintptr(off)
		if !onDevice {
			return m.d.up.onHost(base, int(n), func(q []byte, _ int) error {
				return host(tensor.In(tensor.Host(q), t, len(q)/int(size)))
			})
		}
		return m.d.up.once(func() error { return m.d.up.launch(f, base, operand, int(n/size)) })
	})
}
