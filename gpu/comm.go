package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"peermesh/ops/tensor"
)

// A Comm is a rank's part of an NCCL communicator: some GPUs of one host that reduce
// and exchange among themselves. Every member has a device of its own; NCCL refuses
// two on one. All members call the same methods in the same order.
//
// No method blocks in NCCL: the communicator is asked again and again how far it is,
// and is aborted when the context ends, after which every call is ErrClosed. So a
// member that has died costs the others a context, not a process.
type Comm struct {
	d    *Device
	n    *ncclLibrary
	rank int
	size int

	mu   sync.Mutex // NCCL's calls on one communicator come one at a time
	comm uintptr    // 0 once destroyed
}

// maxRanks bounds the size of a communicator, which is that of a host.
const maxRanks = 1024

// closeWithin bounds an orderly Close. What takes longer is aborted.
const closeWithin = 10 * time.Second

// How long until the communicator is asked again, doubled each time.
const (
	pollFirst = 5 * time.Microsecond
	pollMost  = time.Millisecond
)

// NewComm joins the communicator of an id, as one of size ranks on different
// devices. It returns when all have joined, or with ctx's cause.
func NewComm(ctx context.Context, d *Device, id UniqueID, rank, size int) (*Comm, error) {
	if size < 1 || size > maxRanks || rank < 0 || rank >= size {
		return nil, fmt.Errorf("gpu: rank %d of a communicator of %d", rank, size)
	}
	n, err := nccl()
	if err != nil {
		return nil, err
	}
	return own(d, func() (*Comm, error) {
		c := &Comm{d: d, n: n, rank: rank, size: size}
		if err := c.do(ctx, func() error { return c.init(id) }); err != nil {
			return nil, fmt.Errorf("gpu: rank %d of %d on %v: %w", rank, size, d, errors.Join(err, c.Abort()))
		}
		return c, nil
	})
}

// init begins to join. The scalable variant takes the id by pointer.
func (c *Comm) init(id UniqueID) error {
	config := nonBlocking()
	if c.n.has("ncclCommInitRankScalable") {
		return c.begin("ncclCommInitRankScalable", uintptr(unsafe.Pointer(&c.comm)), uintptr(c.size), uintptr(c.rank),
			1, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(config)))
	}
	comm := new(uintptr)
	code := c.n.initByValue(comm, int32(c.size), id, int32(c.rank), config)
	c.comm = *comm
	if err := c.n.check("ncclCommInitRankConfig", code); !inProgress(err) {
		return err
	}
	return nil
}

// Rank is this member's number in [0, Size).
func (c *Comm) Rank() int { return c.rank }

// Size is the number of members.
func (c *Comm) Size() int { return c.size }

func (c *Comm) String() string { return fmt.Sprintf("rank %d of a communicator of %d", c.rank, c.size) }

// do makes calls that begin something, on one thread with the device's context, and
// waits until it has begun.
func (c *Comm) do(ctx context.Context, begin func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(ctx, begin)
}

func (c *Comm) locked(ctx context.Context, begin func() error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err := func() error {
		// NCCL's group is the thread's, as the driver's context is.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.d.bind(); err != nil {
			return err
		}
		return begin()
	}()
	if err != nil {
		return err
	}
	return c.settle(ctx)
}

// begin is a call that may go on when it returns, which settle waits for.
//
//go:uintptrescapes
func (c *Comm) begin(f string, args ...uintptr) error {
	err := c.n.call(f, args...)
	if inProgress(err) {
		return nil
	}
	return err
}

func inProgress(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Library == "nccl" && e.Code == ncclInProgress
}

// settle waits until what has begun is through, and aborts when ctx ends before.
func (c *Comm) settle(ctx context.Context) error {
	for wait := pollFirst; ; wait = min(2*wait, pollMost) {
		switch err := c.state(); {
		case err == nil:
			return nil
		case !inProgress(err):
			return err
		}
		if err := c.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// state is what has gone wrong on the communicator since, or that it is in progress.
func (c *Comm) state() error {
	var code int32
	if err := c.n.call("ncclCommGetAsyncError", c.comm, uintptr(unsafe.Pointer(&code))); err != nil {
		return err
	}
	return c.n.check("ncclCommGetAsyncError", code)
}

// pause waits, and aborts when ctx ends.
func (c *Comm) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), c.destroy("ncclCommAbort"))
	}
}

// Finish waits until all is done that has been queued on s, where Stream.Sync would
// wait for ever for a member that has died. When ctx ends, or when a member fails, it
// aborts.
func (c *Comm) Finish(ctx context.Context, s *Stream) error {
	e, err := c.d.newEvent()
	if err != nil {
		return err
	}
	err = s.Record(e)
	for wait := pollFirst; err == nil; wait = min(2*wait, pollMost) {
		var happened bool
		if happened, err = e.Happened(); happened || err != nil {
			break
		}
		err = c.watch(ctx, wait)
	}
	return errors.Join(err, e.Close())
}

// watch is a turn of Finish: an error of the communicator's aborts it.
func (c *Comm) watch(ctx context.Context, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.comm == 0 {
		return ErrClosed
	}
	if err := c.state(); err != nil && !inProgress(err) {
		return errors.Join(err, c.destroy("ncclCommAbort"))
	}
	return c.pause(ctx, wait)
}

// Close lets the members part when all have called it and all is done. After
// ten seconds it aborts.
func (c *Comm) Close() error {
	c.d.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.comm == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeWithin,
		fmt.Errorf("gpu: the other members did not part within %v", closeWithin))
	defer cancel()
	err := c.locked(ctx, func() error { return c.begin("ncclCommFinalize", c.comm) })
	if err != nil {
		return errors.Join(err, c.destroy("ncclCommAbort"))
	}
	return c.destroy("ncclCommDestroy")
}

// Abort ends what is under way on this member, and with it the communicator.
func (c *Comm) Abort() error {
	c.d.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.destroy("ncclCommAbort")
}

// destroy frees the communicator, one way or the other.
func (c *Comm) destroy(how string) error {
	if c.comm == 0 {
		return nil
	}
	comm := c.comm
	c.comm = 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return errors.Join(c.d.bind(), c.n.call(how, comm))
}

// address calls f with where a tensor's elements are, which have to be on the
// communicator's device.
func (c *Comm) address(x tensor.Tensor, f func(address uintptr) error) error {
	m, ok := x.Memory().(*Memory)
	if !ok || m.d != c.d {
		return fmt.Errorf("gpu: %v is not on %v", x, c.d)
	}
	if err := m.within(x.Offset(), x.Bytes()); err != nil {
		return err
	}
	return m.h.use(func(base uintptr) error { return f(base + uintptr(x.Offset())) })
}
