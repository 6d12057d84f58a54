package trainer

import (
	"fmt"
	"math"
	"testing"

	"peermesh/ops"
)

// A gradient that is not finite on one rank has all of them skip the step alike.
func TestScaler(t *testing.T) {
	noErrors(t, ranks(2, func(g *ops.Group) error {
		p := floats[float32]("a", 3, 0)
		d, err := ddp(g, []*Param{p}, DDPConfig{})
		if err != nil {
			return err
		}
		opt, err := NewSGD([]*Param{p}, SGDConfig{LR: 1})
		if err != nil {
			return err
		}
		s, err := NewScaler(ScalerConfig{Initial: 8, Interval: 2})
		if err != nil {
			return err
		}
		bad := []float64{math.Inf(1), math.NaN()}
		for step, want := range []float64{8, 16, 8, 8, 16} {
			before := data[float32](p.Value)[0]
			set(p, 3*s.Scale())
			if step == 2 && g.Rank() == 1 {
				data[float32](p.Grad)[2] = float32(bad[step%2])
			}
			d.Ready(0)
			if err := d.Wait(); err != nil {
				return err
			}
			clipped := false
			stepped, err := s.Step(opt, []*Param{p}, func() error { clipped = true; return nil })
			moved := before - data[float32](p.Value)[0]
			if err != nil || stepped != (step != 2) || clipped != stepped || stepped && math.Abs(float64(moved)-3) > 1e-5 || !stepped && moved != 0 {
				return fmt.Errorf("step %d: stepped %v by %v, %v", step, stepped, moved, err)
			}
			if s.Scale() != want || first(s.State()[0].grown()) != want {
				return fmt.Errorf("step %d: the scale is %v, want %v", step, s.Scale(), want)
			}
		}
		return nil
	}))
	for _, c := range []ScalerConfig{{Initial: -1}, {Growth: 0.5}, {Backoff: 1}, {Interval: -1}, {Initial: math.NaN()}} {
		if _, err := NewScaler(c); err == nil {
			t.Errorf("%+v passed", c)
		}
	}
}

// grown is a parameter with its value for a gradient, for first.
func (p *Param) grown() *Param { return &Param{Grad: p.Value} }
