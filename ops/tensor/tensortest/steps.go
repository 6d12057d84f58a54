package tensortest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"peermesh/ops/tensor"
)

// ranks is the number over which steps average, no power of two.
const ranks = 3

// checkSteps takes the steps before and after a fold in the middle of a memory,
// for every type that has them.
func checkSteps(m tensor.Memory) error {
	r := rand.New(rand.NewPCG(seed, 3))
	for _, t := range DTypes() {
		for _, op := range Ops(t) {
			if !op.Steps() {
				continue
			}
			all := tensor.In(m, t, size/t.Size())
			x := all.Slice(1, all.Len()-1)
			want := make([]byte, size)
			Fill(want, t, r)
			if _, err := m.WriteAt(want, 0); err != nil {
				return fmt.Errorf("WriteAt: %w", err)
			}
			mine := want[t.Size() : size-t.Size()]
			if op == tensor.Avg {
				Divide(mine, t, ranks)
			} else {
				Scale(mine, t, factor)
			}
			if err := op.Before(x); err != nil {
				return fmt.Errorf("the step before %v of %v: %w", op, t, err)
			}
			if err := op.After(x, ranks); err != nil {
				return fmt.Errorf("the step after %v of %v: %w", op, t, err)
			}
			got := make([]byte, size)
			if _, err := m.ReadAt(got, 0); err != nil {
				return fmt.Errorf("ReadAt: %w", err)
			}
			if !Equal(got, want, t) {
				return fmt.Errorf("the steps around %v of %v: %x, want %x", op, t, got, want)
			}
		}
	}
	return nil
}

var absmax = tensor.Func("absmax", func(a, b float32) float32 { return max(a, -a, b, -b) })

// checkFunc folds by a function, which a memory may refuse so long as that moves
// nothing, and through a tensor, where it may not.
func checkFunc(m tensor.Memory) error {
	elements, message := []float32{1, -5, 2, 0}, []float32{-3, 4, 0, -1}
	want, p := tensor.Of([]float32{3, 5, 2, 1}), tensor.Of(message)
	x := tensor.In(m, tensor.Float32, len(elements))
	if err := tensor.Copy(x, tensor.Of(elements)); err != nil {
		return err
	}
	sent := make([]byte, p.Bytes())
	if _, err := p.ReadAt(sent, 0); err != nil {
		return err
	}
	if err := m.ReduceAt(sent, 0, tensor.Float32, absmax); err != nil {
		if e := holdsTensor(x, tensor.Of(elements)); e != nil {
			return fmt.Errorf("%v refused: %w", absmax, e)
		}
	}
	if err := x.ReduceAt(sent, 0, absmax); err != nil { // the second time changes nothing
		return fmt.Errorf("%v through a tensor: %w", absmax, err)
	}
	if err := holdsTensor(x, want); err != nil {
		return fmt.Errorf("%v: %w", absmax, err)
	}
	return nil
}

func holdsTensor(x, want tensor.Tensor) error {
	p, q := make([]byte, x.Bytes()), make([]byte, want.Bytes())
	if _, err := x.ReadAt(p, 0); err != nil {
		return err
	}
	if _, err := want.ReadAt(q, 0); err != nil {
		return err
	}
	if !bytes.Equal(p, q) {
		return fmt.Errorf("the elements are %x, want %x", p, q)
	}
	return nil
}
