package gpu

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"
)

// A Module is kernels of a program's own, which the driver has compiled for a device.
type Module struct {
	d *Device
	h handle
}

// Load has the driver compile kernels: PTX text, as "Parallel Thread Execution ISA" has it
// and clang or nvcc make it. The caller closes the module. What the driver cannot compile is
// an [*Error] of cuModuleLoadData.
func (d *Device) Load(text string) (*Module, error) {
	return own(d, func() (*Module, error) {
		m := &Module{d: d}
		return m, d.compile(text, &m.h.value)
	})
}

// compile has the driver make a module of a text.
func (d *Device) compile(text string, module *uintptr) error {
	image := append([]byte(text), 0)
	return d.call("cuModuleLoadData", uintptr(unsafe.Pointer(module)), uintptr(unsafe.Pointer(&image[0])))
}

// function finds a kernel of a module.
func (d *Device) function(module uintptr, name string) (f uintptr, err error) {
	c := append([]byte(name), 0)
	err = d.call("cuModuleGetFunction", uintptr(unsafe.Pointer(&f)), module, uintptr(unsafe.Pointer(&c[0])))
	return f, detail(err, "kernel %s", name)
}

// Close frees the module, whose kernels are none afterwards. It does not wait for those that
// are queued: what they are queued on is to be synchronised before.
func (m *Module) Close() error {
	if m == nil {
		return nil
	}
	m.d.forget(m)
	return m.h.free(func(h uintptr) error { return m.d.call("cuModuleUnload", h) })
}

func (m *Module) String() string { return "a module" }

// A Kernel is a function of a module's, which many threads run.
type Kernel struct {
	m    *Module
	name string
	f    uintptr
}

// Kernel is the kernel of that name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := &Kernel{m: m, name: name}
	err := m.h.use(func(h uintptr) (err error) {
		k.f, err = m.d.function(h, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// An Argument is one of a kernel's: [At], [Uint32] or [Float32].
type Argument struct {
	m    *Memory
	bits uint64 // of a number, or where in m
}

// At is an address: offset bytes into memory, whose parameter is a pointer.
func At(m *Memory, offset int64) Argument { return Argument{m, uint64(offset)} }

// Uint32 is a number, whose parameter has 32 bits.
func Uint32(v uint32) Argument { return Argument{bits: uint64(v)} }

// Float32 is the bits of a number, whose parameter has 32 bits.
func Float32(v float32) Argument { return Argument{bits: uint64(math.Float32bits(v))} }

const (
	// maxArguments bounds those of a kernel.
	maxArguments = 12
	// maxElements bounds a launch, whose kernels may count in 32 bits.
	maxElements = 1<<31 - 1
)

// Launch queues a kernel over n elements, in a row of threads in blocks of 256, at most about
// half a million: each thread t of T is to take elements t, t+T, t+2T and so on. It is for
// the caller that the arguments are the kernel's, and that it stays within the memory, which
// may be closed once the kernel is queued, as that waits for the device.
func (s *Stream) Launch(k *Kernel, n int, args ...Argument) error {
	if n < 0 || n > maxElements || len(args) > maxArguments {
		return fmt.Errorf("gpu: kernel %s: %d arguments, %d elements: at most %d and %d", k.name, len(args), n, maxArguments, maxElements)
	}
	if n == 0 {
		return nil
	}
	return s.h.use(func(stream uintptr) error {
		return k.m.h.use(func(uintptr) error {
			values, release, err := addresses(args)
			defer release()
			if err != nil {
				return fmt.Errorf("gpu: kernel %s: %w", k.name, err)
			}
			return detail(s.d.enqueue(stream, k.f, n, values), "kernel %s over %d elements", k.name, n)
		})
	})
}

// addresses are the arguments as the driver has them. Memory stays until release is called;
// each is held once, for a second time could wait for a Close that waits for the first.
func addresses(args []Argument) (values []uint64, release func(), err error) {
	var held []*Memory
	release = func() {
		for _, m := range held {
			m.h.release()
		}
	}
	values = make([]uint64, len(args))
	for i, a := range args {
		values[i] = a.bits
		if a.m == nil {
			continue
		}
		if !slices.Contains(held, a.m) {
			if err := a.m.h.hold(); err != nil {
				return nil, release, err
			}
			held = append(held, a.m)
		}
		if err := a.m.within(int64(a.bits), 0); err != nil {
			return nil, release, err
		}
		values[i] += uint64(a.m.h.value)
	}
	return values, release, nil
}

// The shape of a launch: enough threads to fill any device, each of which takes its
// share of the elements.
const (
	blockThreads = 256
	maxBlocks    = 2048
)

// enqueue queues a function over n elements on a stream.
func (d *Device) enqueue(stream, f uintptr, n int, values []uint64) error {
	var pinner runtime.Pinner // C reads pointers to Go's memory through Go's memory
	pinner.Pin(&values[0])
	defer pinner.Unpin()
	var params [maxArguments]unsafe.Pointer
	for i := range values {
		params[i] = unsafe.Pointer(&values[i])
	}
	blocks := min((n+blockThreads-1)/blockThreads, maxBlocks)
	return d.call("cuLaunchKernel", f, uintptr(blocks), 1, 1, blockThreads, 1, 1, 0,
		stream, uintptr(unsafe.Pointer(&params)), 0)
}
