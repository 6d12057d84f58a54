package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"peermesh/internal/bytesize"
)

// copySteps are how many sizes of copies are measured.
const copySteps = 6

// leastCopies are how often something is copied, however long it takes.
const leastCopies = 3

// copies copies n bytes both ways, from and to pinned memory and memory of the process's
// own, compares what comes back, and measures.
func (c *checking) copies(ctx context.Context, n int) (note string, err error) {
	m, err := c.d.NewMemory(int64(n))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	up, err := c.d.Pin(n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	down, err := c.d.Pin(n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.s.Sync(), down.Close()) }() // after an error, copies are under way
	own := make([]byte, n)
	stamp(up.Bytes(), 1)
	stamp(own, 2)

	pinned := [2]func() error{
		func() error { return errors.Join(c.s.ToDevice(m, 0, up), c.s.Sync()) },
		func() error { return errors.Join(c.s.ToHost(down, m, 0), c.s.Sync()) },
	}
	pageable := [2]func() error{func() error { return m.take(own) }, func() error { return m.give(own) }}
	var rates [4]float64
	for i, way := range [][2]func() error{pinned, pageable} {
		for _, one := range way {
			if err := one(); err != nil {
				return "", err
			}
		}
		got, want := [][]byte{down.Bytes(), own}[i], make([]byte, n)
		if stamp(want, 1+i); !bytes.Equal(got, want) {
			return "", fmt.Errorf("gpu: %d bytes have changed on the way to the device and back", n)
		}
		for k, one := range way {
			if rates[2*i+k], err = c.rate(ctx, n, one); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("GB/s to and from the device: pinned %.3g %.3g, pageable %.3g %.3g", rates[0], rates[1], rates[2], rates[3]), nil
}

// stamp fills p with bytes that tell its places and fills apart.
func stamp(p []byte, which int) {
	for i := range p {
		p[i] = byte(i*31 + i>>8*17 + which)
	}
}

// rate is how many GB/s f moves, which moves n bytes.
func (c *checking) rate(ctx context.Context, n int, f func() error) (float64, error) {
	begin := time.Now()
	for times := 1; ; times++ {
		if err := f(); err != nil {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if d := time.Since(begin); times >= leastCopies && d >= c.Budget {
			return float64(n) * float64(times) / float64(d.Nanoseconds()), nil
		}
	}
}

// take copies p to the start of m as a program does that knows of no pinned memory: the
// driver copies it first. It returns when that is done, so that p may be Go's.
func (m *Memory) take(p []byte) error {
	return m.use(func(base uintptr) error {
		return m.d.call("cuMemcpyHtoD_v2", base, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	})
}

// give is the reverse of take.
func (m *Memory) give(p []byte) error {
	return m.use(func(base uintptr) error {
		return m.d.call("cuMemcpyDtoH_v2", uintptr(unsafe.Pointer(&p[0])), base, uintptr(len(p)))
	})
}

// staging measures what a collective does: bytes of the host's go through the device's
// pinned chunks.
func (c *checking) staging(ctx context.Context) (note string, err error) {
	n := c.Most
	m, err := c.d.NewMemory(int64(n))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p := make([]byte, n)
	stamp(p, 3)
	up, err := c.rate(ctx, n, func() error { _, err := m.WriteAt(p, 0); return err })
	if err != nil {
		return "", err
	}
	clear(p)
	down, err := c.rate(ctx, n, func() error { _, err := m.ReadAt(p, 0); return err })
	if err != nil {
		return "", err
	}
	want := make([]byte, n)
	if stamp(want, 3); !bytes.Equal(p, want) {
		return "", fmt.Errorf("gpu: %d bytes have changed on the way through chunks", n)
	}
	return fmt.Sprintf("GB/s to and from the device: %.3g %.3g, by %d chunks of %s", up, down, c.d.config.Depth, bytesize.Text(int64(c.d.config.Chunk))), nil
}

// holdsBytes compares memory with what it should hold.
func holdsBytes(m *Memory, want []byte, what string) error {
	got := make([]byte, len(want))
	if _, err := m.ReadAt(got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("gpu: %s of %d bytes is read otherwise", what, len(want))
	}
	return nil
}

// early is how long a stream that is held is watched for what it should not do.
const early = 20 * time.Millisecond

// order has a stream wait for the host, and the host, who uses memory, for the stream.
func (c *checking) order(ctx context.Context) (note string, err error) {
	const n = 1 << 20
	m, err := c.d.NewMemory(n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p, err := c.d.Pin(n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	e, err := c.d.NewEvent()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.s.Sync(), e.Close()) }()
	stamp(p.Bytes(), 4)
	done := make(chan struct{})
	err = errors.Join(c.s.Hold(done), c.s.ToDevice(m, 0, p), c.s.Record(e), m.After(c.s))
	happened := false
	if err == nil {
		select {
		case <-time.After(early):
			happened, err = e.Happened()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	close(done) // or the stream stands still for ever
	if err = errors.Join(err, holdsBytes(m, p.Bytes(), "what a stream wrote")); err != nil {
		return "", err
	}
	if happened {
		return "", errors.New("gpu: a stream has gone on that was held")
	}
	return "a stream waits for the host, and memory for the stream", nil
}
