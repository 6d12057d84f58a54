package convnet

import (
	"errors"
	"io"
	"slices"

	"peermesh/gpu"
	"peermesh/ops/tensor"
)

// A stock is things of a device's that are made and closed together. After the first that
// cannot be made none is, and err says why.
type stock struct {
	d   *gpu.Device
	all []io.Closer
	err error
}

// stocked makes something, unless something before could not be made.
func stocked[T io.Closer](s *stock, create func() (T, error)) (c T) {
	if s.err != nil {
		return c
	}
	if c, s.err = create(); s.err == nil {
		s.all = append(s.all, c)
	}
	return c
}

func (s *stock) stream() *gpu.Stream { return stocked(s, s.d.NewStream) }
func (s *stock) event() *gpu.Event   { return stocked(s, s.d.NewEvent) }

// memory and pinned are of n elements of so many bytes.
func (s *stock) memory(n, size int) *gpu.Memory {
	return stocked(s, func() (*gpu.Memory, error) { return s.d.NewMemory(int64(n) * int64(size)) })
}

func (s *stock) pinned(n, size int) *gpu.Pinned {
	return stocked(s, func() (*gpu.Pinned, error) { return s.d.Pin(n * size) })
}

// close frees all, the last first.
func (s *stock) close() error {
	var errs []error
	for _, c := range slices.Backward(s.all) {
		errs = append(errs, c.Close())
	}
	s.all = nil
	return errors.Join(errs...)
}

// at is where a tensor's elements are, if they are on a device.
func at(x tensor.Tensor) (a gpu.Argument, ok bool) {
	m, ok := x.Memory().(*gpu.Memory)
	if !ok {
		return a, false
	}
	return gpu.At(m, x.Offset()), true
}

// start is the beginning of memory.
func start(m *gpu.Memory) gpu.Argument { return gpu.At(m, 0) }

// elements are pinned bytes as elements of a type, shared.
func elements[T tensor.Element](p *gpu.Pinned, t tensor.DType) []T {
	b := p.Bytes()
	x, _ := tensor.Data[T](tensor.In(tensor.Host(b), t, len(b)/t.Size())) // pinned memory begins at a page
	return x
}
