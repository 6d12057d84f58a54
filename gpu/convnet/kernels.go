package convnet

import (
	_ "embed"

	"peermesh/gpu"
)

// The kernels are text that the driver compiles for the card at hand, as package gpu's are,
// and likewise exact: no fused operations, no flushed denormals, no approximate quotients.
//
//go:generate clang-16 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 -O2 -fno-unroll-loops -fno-vectorize -fno-slp-vectorize -ffp-contract=off -S -o kernels.ptx kernels.cu
//go:embed kernels.ptx
var kernelText string

// A program queues kernels on a stream until one fails, which the caller asks for at the end.
type program struct {
	s       *gpu.Stream
	kernels map[string]*gpu.Kernel
	err     error // the first
}

// newProgram finds all kernels of a module.
func newProgram(m *gpu.Module, s *gpu.Stream) (*program, error) {
	p := &program{s: s, kernels: make(map[string]*gpu.Kernel)}
	for _, name := range gpu.KernelNames(kernelText) {
		k, err := m.Kernel(name)
		if err != nil {
			return nil, err
		}
		p.kernels[name] = k
	}
	return p, nil
}

// run queues a kernel, whose parameters are addresses, n, and numbers.
func (p *program) run(kernel string, n int, addresses []gpu.Argument, numbers ...int) {
	if p.err != nil {
		return
	}
	args := append(addresses, gpu.Uint32(uint32(n)))
	for _, v := range numbers {
		args = append(args, gpu.Uint32(uint32(v)))
	}
	p.err = p.s.Launch(p.kernels[kernel], n, args...)
}

// try does something else that may fail, if nothing has.
func (p *program) try(f func() error) {
	if p.err == nil {
		p.err = f()
	}
}

// end is the first failure, which is forgotten.
func (p *program) end() (err error) {
	err, p.err = p.err, nil
	return err
}
