package trainer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A far is memory that the host cannot address, and that fails when it is told to.
type far struct {
	tensor.Memory
	broken error // of what is written
	mute   error // of what is read
}

func (f *far) ReadAt(p []byte, off int64) (int, error) {
	if f.mute != nil {
		return 0, f.mute
	}
	return f.Memory.ReadAt(p, off)
}

func (f *far) WriteAt(p []byte, off int64) (int, error) {
	if f.broken != nil {
		return 0, f.broken
	}
	return f.Memory.WriteAt(p, off)
}

// distant are parameters of two, three and four elements: the gradients of the last two lie
// side by side, the last one first, as backward makes them.
func distant() (params []*Param, memory *far) {
	one := &far{Memory: tensor.New(tensor.Float32, 2).Memory()}
	memory = &far{Memory: tensor.New(tensor.Float32, 7).Memory()}
	both := tensor.In(memory, tensor.Float32, 7)
	grads := []tensor.Tensor{tensor.In(one, tensor.Float32, 2), both.Slice(4, 7), both.Slice(0, 4)}
	for i, g := range grads {
		params = append(params, &Param{Name: fmt.Sprint("w", i), Value: tensor.New(tensor.Float32, g.Len()), Grad: g})
	}
	return params, memory
}

// backward makes every gradient v, and says so.
func backward(d *DDP, v float32) error {
	for i := len(d.params) - 1; i >= 0; i-- {
		p := d.params[i]
		if err := tensor.Copy(p.Grad, tensor.Of(slices.Repeat([]float32{v}, p.Grad.Len()))); err != nil {
			return err
		}
		d.Ready(i)
	}
	return d.Wait()
}

// TestDDPInPlace averages gradients that the host cannot address where they lie, neighbours
// together, also where a rank has no samples.
func TestDDPInPlace(t *testing.T) {
	noErrors(t, ranks(3, func(g *ops.Group) error {
		params, _ := distant()
		d, err := ddp(g, params, DDPConfig{})
		if err != nil {
			return err
		}
		if len(d.buckets) != 2 || d.buckets[0].len != 7 || d.buckets[1].len != 2 {
			return fmt.Errorf("%d buckets: %v", len(d.buckets), d.at)
		}
		for step, want := range []float32{(1 + 2 + 3) / 3., (1 + 2) / 3.} {
			if step == 1 && g.Rank() == 2 {
				d.Idle()
				err = d.Wait()
			} else {
				err = backward(d, float32(1+g.Rank()))
			}
			if err != nil {
				return err
			}
			for _, p := range params {
				got := make([]float32, p.Grad.Len())
				if err := tensor.Copy(tensor.Of(got), p.Grad); err != nil {
					return err
				}
				for _, v := range got {
					if d := v - want; d > 1e-6 || d < -1e-6 {
						return fmt.Errorf("step %d: %s is %v, want %v", step, p.Name, got, want)
					}
				}
			}
		}
		return nil
	}))
}

// TestDDPInPlaceRefuses what would have the host add to such gradients, or ranks that differ
// in where theirs are.
func TestDDPInPlaceRefuses(t *testing.T) {
	for words, c := range map[string]DDPConfig{
		"without FindUnused": {FindUnused: true},
		"and Static":         {Static: true},
	} {
		for _, err := range ranks(1, func(g *ops.Group) error {
			params, _ := distant()
			_, err := ddp(g, params, c)
			return err
		}) {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%v, want %q", err, words)
			}
		}
	}
	for _, err := range ranks(2, func(g *ops.Group) error {
		params, _ := distant()
		if g.Rank() == 1 {
			params[1].Grad = tensor.New(tensor.Float32, 3)
		}
		_, err := ddp(g, params, DDPConfig{})
		return err
	}) {
		var differ *ParamsError
		if !errors.As(err, &differ) || differ.Index != 1 || !strings.Contains(differ.First, "outside host memory") {
			t.Errorf("ranks with gradients in different places: %v", err)
		}
	}
	for _, change := range []func(p *Param){
		func(p *Param) { p.Grad = tensor.In(p.Grad.Memory(), tensor.Int32, 2) },
		func(p *Param) { p.Grad = tensor.In(p.Grad.Memory(), tensor.Float32, 1) },
	} {
		for _, err := range ranks(1, func(g *ops.Group) error {
			params, _ := distant()
			change(params[0])
			_, err := ddp(g, params, DDPConfig{})
			return err
		}) {
			if err == nil || !strings.Contains(err.Error(), `gradient of "w0"`) {
				t.Errorf("a gradient that is none: %v", err)
			}
		}
	}
}

// TestDDPInPlaceFails has NoSync be refused, and memory that fails be said.
func TestDDPInPlaceFails(t *testing.T) {
	broken := errors.New("no more")
	for _, err := range ranks(1, func(g *ops.Group) error {
		params, memory := distant()
		d, err := ddp(g, params, DDPConfig{})
		if err != nil {
			return err
		}
		d.NoSync()
		if err := backward(d, 1); err == nil || !strings.Contains(err.Error(), "NoSync needs gradients in host memory") {
			return fmt.Errorf("NoSync: %v", err)
		}
		memory.broken = broken
		d.Idle()
		return d.Wait()
	}) {
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), `gradient of "w2"`) {
			t.Errorf("memory fails: %v", err)
		}
	}
}

// TestDDPInPlaceHook has a hook average such gradients, and gets the bits that it gets of the
// same gradients in host memory, on every rank and step after step.
func TestDDPInPlaceHook(t *testing.T) {
	for name, hook := range map[string]Hook{"float16": Float16, "sum": HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
		if len(b.Params) != len(b.Parts) || b.Data.Len() == 0 || b.Parts[0].Memory() == b.Params[0].Grad.Memory() {
			return Failed(fmt.Errorf("bucket %d: %v", b.Index, b))
		}
		return g.AllReduce(ctx, b.Data, tensor.Sum)
	})} {
		noErrors(t, ranks(3, func(g *ops.Group) error {
			params, memory := distant()
			d, err := ddp(g, params, DDPConfig{Hook: hook})
			if err != nil {
				return err
			}
			for step := range 2 {
				d.Weigh(float64(1+g.Rank()) / 6)
				if err := backward(d, float32(step+2*g.Rank())); err != nil {
					return err
				}
				got := make([]float32, 7)
				if err := tensor.Copy(tensor.Of(got), tensor.In(memory, tensor.Float32, 7)); err != nil {
					return err
				}
				for _, v := range got { // (0 + 2·2 + 3·4)/6 and one a step
					if want := float32(step) + 16./6; v < want*.999 || v > want*1.001 {
						return fmt.Errorf("%s: step %d: %v, want %v", name, step, got, want)
					}
				}
			}
			return nil
		}))
	}
}

// TestDDPInPlaceHookFails has the memory fail before the hook and after it, and the hook.
func TestDDPInPlaceHookFails(t *testing.T) {
	broken := errors.New("no more")
	for _, at := range []string{"read", "write", "hook"} {
		for _, err := range ranks(1, func(g *ops.Group) error {
			params, memory := distant()
			d, err := ddp(g, params, DDPConfig{Hook: HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
				switch at {
				case "hook":
					return Failed(broken)
				case "write":
					memory.broken = broken
				}
				return g.AllReduce(ctx, b.Data, tensor.Sum)
			})})
			if err != nil {
				return err
			}
			if at == "read" {
				memory.mute = broken
			}
			for i := len(params) - 1; i >= 0; i-- {
				d.Ready(i)
			}
			return d.Wait()
		}) {
			if !errors.Is(err, broken) {
				t.Errorf("%s fails: %v", at, err)
			}
		}
	}
}

// TestAverageElsewhere is AverageGradients of gradients in both places: they come to the same.
func TestAverageElsewhere(t *testing.T) {
	noErrors(t, ranks(3, func(g *ops.Group) error {
		params, _ := distant()
		params = append(params, &Param{Name: "host", Value: tensor.New(tensor.Float32, 4), Grad: tensor.New(tensor.Float32, 4)})
		for _, p := range params {
			if err := tensor.Copy(p.Grad, tensor.Of(slices.Repeat([]float32{float32(g.Rank()) + 0.1}, p.Grad.Len()))); err != nil {
				return err
			}
		}
		if err := AverageGradients(context.Background(), g, params); err != nil {
			return err
		}
		near, there := make([]float32, 4), make([]float32, 4)
		err := errors.Join(tensor.Copy(tensor.Of(near), params[3].Grad), tensor.Copy(tensor.Of(there), params[2].Grad))
		if err == nil && !slices.Equal(near, there) {
			err = fmt.Errorf("%v there, %v here", there, near)
		}
		return err
	}))
	params, _ := distant()
	params[1].Grad = tensor.In(params[1].Grad.Memory(), tensor.Int32, 3)
	for _, err := range ranks(1, func(g *ops.Group) error { return AverageGradients(context.Background(), g, params) }) {
		if err == nil || !strings.Contains(err.Error(), `gradient of "w1"`) {
			t.Errorf("whole numbers: %v", err)
		}
	}
}
