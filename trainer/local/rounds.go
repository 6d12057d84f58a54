package local

import (
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// launch sends a part's pseudo-gradient, by weight, on its way to all ranks: how far this
// rank's model is from where all began, to be summed.
func (r *Replica) launch(c *part, weight float64) {
	if c.dtype == tensor.Float32 {
		away[float32](r, c, weight)
	} else {
		away[float64](r, c, weight)
	}
	c.pair = false
	if r.p.codec == nil {
		c.works = []*ops.Work{r.g.AllReduce(r.ctx, c.flight, tensor.Sum)}
		return
	}
	c.works = []*ops.Work{r.g.AllReduceCoded(r.ctx, c.flight, tensor.Sum, ops.Coding{Codec: r.p.codec, Lost: c.lost})}
}

// away leaves weight·(anchor − live) in the flight, and what is owed.
func away[T real](r *Replica, c *part, weight float64) {
	w, owed := T(weight), elements[T](c.owed)
	each(c, func(flight, live, anchor, _ []T) {
		for i, a := range anchor {
			flight[i] = w * T(a-live[i])
		}
		if owed == nil {
			return
		}
		for i := range flight {
			flight[i] += owed[i]
		}
		owed = owed[len(flight):]
	}, r.params, r.anchors, nil)
}

// owe notes what the codec has not got across. A model that has kept a part of its own has
// that part of what was lost too, and sends it again without being told; but then of what
// it owed before, nothing has gone with its own.
func owe[T real](c *part, keep float64) {
	owed, own, others := elements[T](c.owed), T(keep), T(1-keep)
	for i, v := range elements[T](c.lost) {
		owed[i] = T(others*v) + T(own*owed[i])
	}
}

// wait ends what is under way of a part.
func (r *Replica) wait(c *part) error {
	var err error
	for _, w := range c.works {
		err = errors.Join(err, w.Wait())
	}
	c.works, c.due = nil, 0
	if err != nil {
		return fmt.Errorf("local: synchronising: %w", err)
	}
	return nil
}

// drop lets what is under way end, for nobody: a world has ended, or all is synchronised
// at once. So does what has arrived in a step that did not count after all. It is not
// missed, as the next pseudo-gradient has all of this one.
func (r *Replica) drop(c *part) error {
	c.landed = false
	if c.due == 0 {
		return nil
	}
	return r.wait(c)
}

// land takes the outer step of a part that has come, and has the model follow.
func (r *Replica) land(c *part, keep float64) {
	if c.dtype == tensor.Float32 {
		outer[float32](r, c, keep)
		owe[float32](c, keep)
	} else {
		outer[float64](r, c, keep)
		owe[float64](c, keep)
	}
}

// outer is torch.optim.SGD's step with Nesterov's momentum, on the anchor, for the mean
// pseudo-gradient in the flight. As in package trainer, conversions keep machines from
// fusing, so that all get the same bits.
func outer[T real](r *Replica, c *part, keep float64) {
	rate, m, own, others := T(r.p.rate), T(r.p.momentum), T(keep), T(1-keep)
	each(c, func(flight, live, anchor, momentum []T) {
		for i, d := range flight {
			if momentum != nil {
				b := T(m*momentum[i]) + d
				momentum[i] = b
				d += T(m * b)
			}
			a := anchor[i] - T(rate*d)
			anchor[i] = a
			if own != 0 {
				a = T(own*live[i]) + T(others*a)
			}
			live[i] = a
		}
	}, r.params, r.anchors, r.momenta)
}

// turn reports whether a part sets off at a step.
func (r *Replica) turn(c *part, step int64) bool {
	since := step - max(r.counter[1], r.p.warmup)
	return since > 0 && (since+c.turn)%r.p.every == 0
}
