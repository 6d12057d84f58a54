package gpu

import (
	_ "embed"
	"errors"
	"strings"

	"peermesh/ops/tensor"
)

// The kernels are text that every driver since 2017 compiles for the card at hand, of
// compute capability 7.0 or later. Their arithmetic is exact: no fused operations, no
// flushed denormals, no approximate quotients.
//
//go:generate clang-16 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 -O2 -fno-unroll-loops -fno-vectorize -ffp-contract=off -S -o kernels.ptx kernels.cu
//go:embed kernels.ptx
var kernelText string

// kernels are a device's compiled kernels, or why there are none: then the host
// computes.
type kernels struct {
	module    uintptr
	functions map[string]uintptr
	failure   error
}

// loadKernels has the driver compile the kernels. A driver that cannot is no error,
// but one that fails otherwise is.
func loadKernels(d *Device) (*kernels, error) {
	k := &kernels{functions: make(map[string]uintptr)}
	err := d.compile(kernelText, &k.module)
	var e *Error
	if errors.As(err, &e) && compiler[e.Code] {
		k.failure = err
		return k, nil
	}
	if err != nil {
		return k, err
	}
	for _, name := range KernelNames(kernelText) {
		f, err := d.function(k.module, name)
		if err != nil {
			return k, err
		}
		k.functions[name] = f
	}
	return k, nil
}

// compiler are the codes by which a driver says that it cannot compile the text: an
// image that is none to it, no code for this card, text that is wrong, no compiler,
// text of a later version than its own.
var compiler = map[int]bool{200: true, 209: true, 218: true, 221: true, 222: true}

// KernelNames are the kernels of a PTX text, as clang writes it.
func KernelNames(ptx string) (names []string) {
	for line := range strings.Lines(ptx) {
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			names = append(names, name)
		}
	}
	return names
}

func (k *kernels) unload(d *Device) error {
	if k == nil || k.module == 0 {
		return nil
	}
	return d.call("cuModuleUnload", k.module)
}

// fold is the kernel of a reduction, if there is one.
func (k *kernels) fold(t tensor.DType, op tensor.Op) (f uintptr, ok bool) {
	f, ok = k.functions[foldName(t, op)]
	return f, ok
}

// step is the kernel of a step, if there is one.
func (k *kernels) step(t tensor.DType, name string) (f uintptr, ok bool) {
	if name == "scale" {
		t = unsigned(t)
	}
	f, ok = k.functions[name+"_"+t.String()]
	return f, ok
}

// foldName is the name of a reduction's kernel: sums and products know no sign, and
// of bools they are what or and and are.
func foldName(t tensor.DType, op tensor.Op) string {
	name := op.Code().String()
	if _, premul := op.Factor(); premul || op == tensor.Avg {
		name = tensor.Sum.String()
	}
	if t == tensor.Bool {
		switch op {
		case tensor.Sum, tensor.Max:
			name = tensor.BitOr.String()
		case tensor.Product, tensor.Min:
			name = tensor.BitAnd.String()
		}
	}
	if name != tensor.Min.String() && name != tensor.Max.String() {
		t = unsigned(t)
	}
	return name + "_" + t.String()
}

// unsigned is the type without a sign.
func unsigned(t tensor.DType) tensor.DType {
	switch t {
	case tensor.Int8:
		return tensor.Uint8
	case tensor.Int16:
		return tensor.Uint16
	case tensor.Int32:
		return tensor.Uint32
	case tensor.Int64:
		return tensor.Uint64
	}
	return t
}
