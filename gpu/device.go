package gpu

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// A Config says which device to open and how to stage its memory. The zero Config
// is device 0 with the defaults.
type Config struct {
	Ordinal int // among those that the process sees
	// Chunk is the size in bytes of the pieces in which data crosses between host
	// and device, a multiple of 16; zero means DefaultChunk.
	Chunk int
	// Depth is how many chunks may be under way at once, for each direction; zero
	// means DefaultDepth. A device pins 2 × Depth × Chunk bytes of the host's memory.
	Depth int
}

// What a Config's zeros mean. A copy of 1 MiB takes about 20 µs over PCIe 5, of
// which starting it is a small part, and four keep the bus busy while the host
// fills and empties others.
const (
	DefaultChunk = 1 << 20
	DefaultDepth = 4

	maxChunk = 1 << 28
	maxDepth = 64
	granule  = 16 // of a chunk: whole elements of every type
)

// A Device is a GPU that this process uses. Everything that is made by one belongs
// to it and ends with it. All methods may be called from any goroutine.
type Device struct {
	Info
	l       *library
	device  int32
	context uintptr
	config  Config
	kernels *kernels
	down    *belt // device to host
	up      *belt // host to device, and the arithmetic

	life   sync.RWMutex // held while something is made, and to close
	closed bool

	mu   sync.Mutex
	live map[io.Closer]struct{}
}

// Open makes a device ready for use. The caller closes it.
func Open(c Config) (*Device, error) {
	if c.Chunk == 0 {
		c.Chunk = DefaultChunk
	}
	if c.Depth == 0 {
		c.Depth = DefaultDepth
	}
	if c.Chunk < 0 || c.Chunk > maxChunk || c.Chunk%granule != 0 || c.Depth < 0 || c.Depth > maxDepth {
		return nil, fmt.Errorf("gpu: %d chunks of %d bytes: 1 to %d of at most %d, in multiples of %d",
			c.Depth, c.Chunk, maxDepth, maxChunk, granule)
	}
	l, err := driver()
	if err != nil {
		return nil, err
	}
	d := &Device{l: l, config: c, live: make(map[io.Closer]struct{})}
	if d.device, d.Info, err = inquire(l, c.Ordinal); err != nil {
		return nil, err
	}
	// The primary context is the one that NCCL and CUDA's runtime use as well.
	if err := l.call("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(&d.context)), uintptr(d.device)); err != nil {
		return nil, fmt.Errorf("gpu: device %d: %w", c.Ordinal, err)
	}
	d.kernels, err = loadKernels(d)
	if err == nil {
		d.down, err = newBelt(d, false)
	}
	if err == nil {
		d.up, err = newBelt(d, d.kernels.failure == nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gpu: device %d: %w", c.Ordinal, err), d.Close())
	}
	return d, nil
}

// Close waits for what is under way on the device, frees all that it made and that
// is still there, and lets it go. Leaks says beforehand what that will be. A call of
// anything of the device's afterwards is ErrClosed.
func (d *Device) Close() error {
	d.life.Lock()
	if d.closed {
		d.life.Unlock()
		return nil
	}
	d.closed = true
	d.life.Unlock()

	d.mu.Lock()
	live := slices.Collect(maps.Keys(d.live))
	d.mu.Unlock()
	// Communicators use streams, and operations on memory the belts.
	slices.SortFunc(live, func(a, b io.Closer) int { return closing(a) - closing(b) })
	var errs []error
	for _, c := range live {
		errs = append(errs, c.Close())
	}
	errs = append(errs, d.down.close(), d.up.close(), d.kernels.unload(d),
		d.l.call("cuDevicePrimaryCtxRelease_v2", uintptr(d.device)))
	return errors.Join(errs...)
}

// closing is when to close something, among others.
func closing(c io.Closer) int {
	switch c.(type) {
	case *Comm:
		return 0
	case *Stream:
		return 1
	}
	return 2
}

// Leaks describes what the device has made and nobody has closed, sorted.
func (d *Device) Leaks() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for c := range d.live {
		all = append(all, fmt.Sprint(c))
	}
	slices.Sort(all)
	return all
}

// String is the device's name and number.
func (d *Device) String() string { return fmt.Sprintf("%s (device %d)", d.Name, d.Ordinal) }

// Room is how much of the device's memory is free and how much there is, in bytes.
func (d *Device) Room() (free, total int64, err error) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return 0, 0, ErrClosed
	}
	err = d.call("cuMemGetInfo_v2", uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

// call calls a function of the driver with the device's context current. Which one
// is belongs to the OS thread, and between two calls the scheduler may change that,
// so the goroutine is locked to its thread for the pair.
//
//go:uintptrescapes
func (d *Device) call(f string, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return err
	}
	return d.l.call(f, args...)
}

// bind makes the device's context current on this thread, to which the caller has
// locked its goroutine.
func (d *Device) bind() error { return d.l.call("cuCtxSetCurrent", d.context) }

// own has create make something that the device frees when it is closed, unless
// that was done before.
func own[T io.Closer](d *Device, create func() (T, error)) (c T, err error) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return c, ErrClosed
	}
	c, err = create()
	if err != nil {
		var none T
		return none, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[c] = struct{}{}
	return c, nil
}

// forget is own's reverse, for what has been freed.
func (d *Device) forget(c io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, c)
}
