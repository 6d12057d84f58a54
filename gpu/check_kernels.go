package gpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"peermesh/ops/tensor"
)

// checkElements is how many elements a kernel is tried on: no multiple of anything, and
// more than the threads of some blocks.
const checkElements = 2_003

// checkOps are the reductions, of which each element type has its own.
var checkOps = []tensor.Op{tensor.Sum, tensor.Product, tensor.Min, tensor.Max, tensor.Avg, tensor.BitAnd, tensor.BitOr, tensor.BitXor, tensor.PremulSum(3)}

// checkTypes are all element types.
func checkTypes() (all []tensor.DType) {
	for t := range tensor.DType(math.MaxUint8) {
		if t.Valid() {
			all = append(all, t)
		}
	}
	return all
}

// arithmetic computes with every kernel, on elements of any bits, and compares with the
// host's arithmetic bit for bit; one NaN is as good as another.
func (c *checking) arithmetic(ctx context.Context) (string, error) {
	if err := c.d.kernels.failure; err != nil {
		return "", fmt.Errorf("gpu: the driver does not compile the kernels: %w", err)
	}
	tried := make(map[string]bool)
	for _, t := range checkTypes() {
		for _, op := range checkOps {
			if op.Check(t) != nil {
				continue
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			if _, ok := c.d.kernels.fold(t, op); !ok {
				return "", fmt.Errorf("gpu: no kernel for %v of %v", op, t)
			}
			if err := c.compute(t, op); err != nil {
				return "", fmt.Errorf("gpu: %v of %v: %w", op, t, err)
			}
			tried[foldName(t, op)] = true
		}
	}
	return fmt.Sprintf("%d reductions of %d elements, bit for bit", len(tried), checkElements), nil
}

// compute has the device and the host compute the same: the step before, a fold, and the
// step after.
func (c *checking) compute(t tensor.DType, op tensor.Op) (err error) {
	x, err := c.d.Alloc(t, checkElements)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Memory().(*Memory).Close()) }()
	r := rand.New(rand.NewPCG(uint64(t), uint64(op.Code())))
	mine, theirs := drawn(r, t), drawn(r, t)
	on := tensor.In(tensor.Host(mine), t, checkElements)
	if _, err := x.WriteAt(mine, 0); err != nil {
		return err
	}
	for _, y := range []tensor.Tensor{x, on} {
		const ranks = 3
		if err := errors.Join(op.Before(y), y.ReduceAt(theirs, 0, op), op.After(y, ranks)); err != nil {
			return err
		}
	}
	got := make([]byte, len(mine))
	if _, err := x.ReadAt(got, 0); err != nil {
		return err
	}
	return sameBits(got, mine, t)
}

// drawn are elements of random bits, in which all that is special about floats occurs.
func drawn(r *rand.Rand, t tensor.DType) []byte {
	p := make([]byte, checkElements*t.Size())
	for i := range p {
		p[i] = byte(r.Uint32())
		if t == tensor.Bool {
			p[i] &= 1
		}
	}
	return p
}

// sameBits compares elements.
func sameBits(got, want []byte, t tensor.DType) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for size, i := t.Size(), 0; i < len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if !bytes.Equal(g, w) && !(isNaN(g, t) && isNaN(w, t)) {
			return fmt.Errorf("element %d is %x on the device, %x on the host", i/size, g, w)
		}
	}
	return nil
}

// isNaN reports whether an element is no number.
func isNaN(p []byte, t tensor.DType) bool {
	switch t {
	case tensor.Float16:
		return binary.LittleEndian.Uint16(p)&0x7fff > 0x7c00
	case tensor.BFloat16:
		return binary.LittleEndian.Uint16(p)&0x7fff > 0x7f80
	case tensor.Float32:
		return binary.LittleEndian.Uint32(p)&0x7fffffff > 0x7f800000
	case tensor.Float64:
		return binary.LittleEndian.Uint64(p)<<1 > 0x7ff<<53
	}
	return false
}
