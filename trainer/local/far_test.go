package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// A far is memory that the host cannot address, which fails after so many calls.
type far struct {
	tensor.Memory
	left *int // nil: never
}

var errFar = errors.New("far")

func (f far) ReadAt(p []byte, off int64) (int, error) {
	if err := f.called(); err != nil {
		return 0, err
	}
	return f.Memory.ReadAt(p, off)
}

func (f far) WriteAt(p []byte, off int64) (int, error) {
	if err := f.called(); err != nil {
		return 0, err
	}
	return f.Memory.WriteAt(p, off)
}

func (f far) called() error {
	if f.left == nil {
		return nil
	}
	if *f.left--; *f.left < 0 {
		return errFar
	}
	return nil
}

// distant has a model's values in such memory, which copies of nothing else share.
func distant(params []*trainer.Param, left *int) (all []*trainer.Param) {
	for _, p := range params {
		m := far{tensor.New(p.Value.DType(), p.Value.Len()).Memory(), left}
		all = append(all, &trainer.Param{Name: p.Name, Value: tensor.In(m, p.Value.DType(), p.Value.Shape()...)})
	}
	return all
}

// walk has a rank take steps with a method, its model in the host's memory or away from it,
// and returns the model after each.
func walk(ctx context.Context, g *ops.Group, m Method, away bool) (models [][]float64, err error) {
	p := newPupil(tensor.Float32, g.Rank())
	model := p.params()
	if away {
		model = distant(p.params(), nil)
	}
	r, err := New(m, model)
	if err == nil {
		err = r.Begin(ctx, g)
	}
	for range 9 {
		// A step of SGD, wherever the model is.
		err = errors.Join(err, transfer(p.params(), model))
		p.step()
		if r.Warm() {
			err = errors.Join(err, trainer.AverageGradients(ctx, g, p.params()))
		}
		for _, q := range p.params() {
			w, d := elements[float32](q.Value), elements[float32](q.Grad)
			for i := range w {
				w[i] -= 0.1 * d[i]
			}
		}
		err = errors.Join(err, transfer(model, p.params()))
		if err == nil {
			err = r.Step()
		}
		err = errors.Join(err, transfer(p.params(), model))
		models = append(models, flat(p.params()))
		if err != nil {
			return nil, err
		}
	}
	if err := errors.Join(r.Begin(ctx, g), r.Finish(), r.Rewind(), transfer(p.params(), model)); err != nil {
		return nil, err
	}
	return append(models, flat(p.params())), nil
}

// TestFar trains a model that the host cannot address as one that it can, to the bit and
// after every step, by each method.
func TestFar(t *testing.T) {
	for name, m := range map[string]Method{
		"local sgd": LocalSGD{Every: 3},
		"warm":      PostLocalSGD{Warmup: 4, Every: 2},
		"late":      DiLoCo{Every: 3, Delay: 1, Keep: 0.5},
		"streaming": StreamingDiLoCo{DiLoCo: DiLoCo{Every: 4}, Parts: 2},
		"sma":       SMA{},
		"pairs":     PairAveraging{Delay: 0},
	} {
		var runs [2][2][][]float64 // by place and rank
		for k := range 2 {
			noErrors(t, onEach(memnet.New(2), func(g *ops.Group) (err error) {
				runs[k][g.Rank()], err = walk(t.Context(), g, m, k == 1)
				return err
			}))
		}
		for rank := range 2 {
			for step, near := range runs[0][rank] {
				if !slices.Equal(near, runs[1][rank][step]) {
					t.Errorf("%s: rank %d differs after step %d", name, rank, step+1)
					break
				}
			}
		}
	}
}

// TestFarFails has each copy fail, of all that a rank makes from New to Finish: some call
// says so, and none counts a step that has not come.
func TestFarFails(t *testing.T) {
	run := func(left *int, m Method) error {
		errs := onEach(memnet.New(1), func(g *ops.Group) error {
			model := distant(newPupil(tensor.Float32, 0).params(), left)
			r, err := New(m, model)
			if err != nil {
				return err
			}
			if err := r.Begin(t.Context(), g); err != nil {
				return err
			}
			for range 3 {
				if err := r.Step(); err != nil {
					return err
				}
			}
			return errors.Join(r.Begin(t.Context(), g), r.Finish())
		})
		return errs[0]
	}
	for _, m := range []Method{LocalSGD{Every: 2}, PairAveraging{}, PostLocalSGD{Warmup: 3}} {
		many := 1 << 20
		if err := run(&many, m); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		for n := range 1<<20 - many {
			left := n
			if err := run(&left, m); !errors.Is(err, errFar) {
				t.Errorf("%s: copy %d of %d fails: %v", fmt.Sprintf("%T", m), n+1, 1<<20-many, err)
			}
		}
	}
}
