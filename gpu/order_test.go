package gpu_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

// TestAverage has the steps before and after a fold taken on devices.
func TestAverage(t *testing.T) {
	places := devices(t, 4, true, gpu.Config{Chunk: 1024, Depth: 2})
	for r, err := range everyone(places, func(g *ops.Group, at place) error {
		for _, c := range []struct {
			op   tensor.Op
			want float32
		}{{tensor.Avg, 2.5}, {tensor.PremulSum(float64(1 + g.Rank())), 30}} {
			elements := make([]float32, 1000)
			for i := range elements {
				elements[i] = float32(1 + g.Rank())
			}
			p := make([]byte, 4000)
			if _, err := tensor.Of(elements).ReadAt(p, 0); err != nil {
				return err
			}
			x, err := at.put(tensor.Float32, p)
			if err != nil {
				return err
			}
			err = g.AllReduce(t.Context(), x, c.op).Wait()
			got := tensor.Of(elements)
			err = errors.Join(err, tensor.Copy(got, x), drop(x))
			for _, v := range elements {
				if v != c.want {
					return fmt.Errorf("%v: %v, want %v: %w", c.op, v, c.want, err)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestOrder runs an all-reduce between what two streams compute before it and after it,
// while the host waits for nothing.
func TestOrder(t *testing.T) {
	places := devices(t, 2, false, gpu.Config{})
	for r, err := range everyone(places, func(g *ops.Group, at place) error {
		x, err := at.put(tensor.Int32, make([]byte, 64))
		p, e1 := at.d.Pin(64)
		s, e2 := at.d.NewStream()
		if err := errors.Join(err, e1, e2); err != nil {
			return err
		}
		m := x.Memory().(*gpu.Memory)
		compute := make(chan struct{})
		p.Bytes()[0] = byte(1 + g.Rank())
		err = errors.Join(s.Hold(compute), s.ToDevice(m, 0, p), m.After(s))
		w := g.AllReduce(t.Context(), x, tensor.Sum)
		err = errors.Join(err, s.Hold(w.Done()), s.ToHost(p, m, 0))
		close(compute) // not before all has been queued
		err = errors.Join(err, s.Sync(), w.Wait())
		if got := p.Bytes()[0]; got != 3 {
			return fmt.Errorf("%d: %w", got, err)
		}
		return errors.Join(err, s.Close(), p.Close(), drop(x))
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestPipeline has one stream compute two tensors and wait for the all-reduce of the first
// between them, as training does: the second must not hold up the first, which the stream
// that it waits for waits for.
func TestPipeline(t *testing.T) {
	places := devices(t, 2, false, gpu.Config{Depth: 1})
	for r, err := range everyone(places, func(g *ops.Group, at place) error {
		first, err := at.put(tensor.Int32, []byte{1, 0, 0, 0})
		second, e1 := at.put(tensor.Int32, []byte{2, 0, 0, 0})
		s, e2 := at.d.NewStream()
		if err := errors.Join(err, e1, e2); err != nil {
			return err
		}
		m1, m2 := first.Memory().(*gpu.Memory), second.Memory().(*gpu.Memory)
		compute := make(chan struct{})
		err = errors.Join(s.Hold(compute), m1.After(s))
		w1 := g.AllReduce(t.Context(), first, tensor.Sum)
		// What comes next on the stream uses the sum of the first.
		err = errors.Join(err, s.Hold(w1.Done()), s.Copy(m2, 0, m1, 0, 4), m2.After(s), m2.After(s))
		w2 := g.AllReduce(t.Context(), second, tensor.Sum)
		close(compute)
		err = errors.Join(err, w1.Wait(), w2.Wait(), s.Sync())
		var p [4]byte
		_, e := second.ReadAt(p[:], 0)
		if err = errors.Join(err, e); err != nil || p[0] != 4 {
			return fmt.Errorf("%d, want 4: %w", p[0], err)
		}
		return errors.Join(s.Close(), drop(first, second))
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestLostDevice has a device fail in the midst of an all-reduce: that ends the world, for
// every rank, with the cause, at the latest in the operation after.
func TestLostDevice(t *testing.T) {
	places := devices(t, 3, true, gpu.Config{Ordinal: 0, Chunk: 1024})
	places[2] = place{} // one rank has a device, whose failure is not another's
	gpu.Fail(t, gpu.EnvCUDA, "kernel", 3, 700)
	errs := everyone(places, func(g *ops.Group, at place) error {
		x, err := at.put(tensor.Float32, make([]byte, 64<<10))
		if err != nil {
			return err
		}
		err = g.AllReduce(t.Context(), x, tensor.Sum).Wait()
		if err == nil {
			err = g.AllReduce(t.Context(), x, tensor.Sum).Wait()
		}
		return errors.Join(err, drop(x))
	})
	gpu.Tell(t, gpu.EnvCUDA, "fake_reset")
	if !errors.Is(errs[0], gpu.ErrLost) {
		t.Errorf("rank 0: %v", errs[0])
	}
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "(FAKE_ERROR_700, 700)") {
			t.Errorf("rank %d has not learnt of it: %v", r, err)
		}
	}
}
