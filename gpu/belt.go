package gpu

import (
	"errors"
	"unsafe"
)

// A belt carries data one way between host and device: chunks of pinned memory that
// are filled at one end and emptied at the other while their neighbours move.
// Several operations may be on it at once and share its chunks: each has one at
// least, and gets more while there are any, so that a large one alone has them all
// and none waits for another that waits for it.
type belt struct {
	d      *Device
	stream *Stream
	slots  chan *slot // those that nobody uses
	all    []*slot
}

// A slot is a chunk and what says when it is free.
type slot struct {
	pinned  *Pinned
	bytes   []byte
	event   *Event
	memory  *Memory // on the device, as long as the chunk, where arithmetic is done there
	scratch uintptr // its address
	off, n  int     // of what it carries
}

// newBelt makes a belt with chunks as the device's Config says.
func newBelt(d *Device, scratch bool) (b *belt, err error) {
	b = &belt{d: d, slots: make(chan *slot, d.config.Depth)}
	if b.stream, err = d.newStream(); err != nil {
		return nil, err
	}
	for range d.config.Depth {
		s := new(slot)
		b.all = append(b.all, s)
		if s.pinned, err = d.pin(d.config.Chunk); err != nil {
			s.pinned = nil
			return nil, errors.Join(err, b.close())
		}
		s.bytes = s.pinned.Bytes()
		if s.event, err = d.newEvent(); err != nil {
			s.event = nil
			return nil, errors.Join(err, b.close())
		}
		if scratch {
			s.memory = &Memory{d: d, n: int64(d.config.Chunk)}
			if err = d.call("cuMemAlloc_v2", uintptr(unsafe.Pointer(&s.memory.h.value)), uintptr(d.config.Chunk)); err != nil {
				return nil, errors.Join(d.noRoom(err, int64(d.config.Chunk)), b.close())
			}
			s.scratch = s.memory.h.value
		}
		b.slots <- s
	}
	return b, nil
}

// close frees the belt, on which nothing is under way.
func (b *belt) close() error {
	if b == nil {
		return nil
	}
	errs := []error{b.stream.Close()}
	for _, s := range b.all {
		errs = append(errs, s.pinned.Close(), s.event.Close(), s.memory.Close())
	}
	return errors.Join(errs...)
}

// carry moves n bytes: start queues what is to happen to bytes [off, off+n) in a
// slot, and finish, if there is one, follows when that has happened. It returns when
// all has, and after an error when nothing is under way that was begun.
func (b *belt) carry(n int, start, finish func(s *slot, off, n int) error) error {
	var failed error
	var flight []*slot // begun, the first of them first
	for off := 0; off < n && failed == nil || len(flight) > 0; {
		if off < n && failed == nil {
			if s := b.take(len(flight) == 0); s != nil {
				s.off, s.n = off, min(b.d.config.Chunk, n-off)
				failed = b.settle(errors.Join(start(s, s.off, s.n), b.stream.Record(s.event)))
				flight, off = append(flight, s), off+s.n
				continue
			}
		}
		s := flight[0]
		flight = flight[1:]
		err := s.event.Sync()
		if err == nil && failed == nil && finish != nil {
			err = finish(s, s.off, s.n)
		}
		b.slots <- s
		if failed == nil {
			failed = err
		}
	}
	return failed
}

// take is a free slot: the next, or nil if there is none now and none is needed.
func (b *belt) take(needed bool) *slot {
	if needed {
		return <-b.slots
	}
	select {
	case s := <-b.slots:
		return s
	default:
		return nil
	}
}

// once queues work that needs no chunk, and waits for it.
func (b *belt) once(queue func() error) error {
	s := b.take(true)
	defer func() { b.slots <- s }()
	return b.settle(errors.Join(queue(), b.stream.Record(s.event), s.event.Sync()))
}

// settle is for an error that leaves open what of some work has been queued: nothing is when
// it returns, so that no chunk is used again while a copy is under way.
func (b *belt) settle(err error) error {
	if err != nil {
		err = errors.Join(err, b.stream.Sync())
	}
	return err
}

// onHost has f change n bytes at an address chunk by chunk on the host.
func (b *belt) onHost(address uintptr, n int, f func(p []byte, off int) error) error {
	return b.carry(n,
		func(s *slot, off, n int) error { return b.fetch(s, address+uintptr(off), n) },
		func(s *slot, off, n int) error {
			if err := f(s.bytes[:n], off); err != nil {
				return err
			}
			return b.settle(errors.Join(b.push(address+uintptr(off), s, n), b.stream.Record(s.event), s.event.Sync()))
		})
}

// fetch queues a copy of n bytes at an address to a chunk.
func (b *belt) fetch(s *slot, address uintptr, n int) error {
	return b.d.call("cuMemcpyDtoHAsync_v2", s.pinned.h.value, address, uintptr(n), b.stream.h.value)
}

// push queues a copy of n bytes of a chunk to an address.
func (b *belt) push(address uintptr, s *slot, n int) error {
	return b.d.call("cuMemcpyHtoDAsync_v2", address, s.pinned.h.value, uintptr(n), b.stream.h.value)
}

// launch queues a kernel over n elements; see kernels.cu.
func (b *belt) launch(f uintptr, address uintptr, operand uint64, n int) error {
	return b.d.enqueue(b.stream.h.value, f, n, []uint64{uint64(address), operand, uint64(n)})
}
