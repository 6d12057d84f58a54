package trainer

import (
	"errors"
	"fmt"
	"slices"
)

// A step's last gradients are those of the network's first layers, and a step's first
// parameters are theirs as well: so where Wait stands between two steps, everything that is
// still under way then is waited for with nothing to compute. But a layer wants only its own
// parameters. With DDPConfig.Update the next forward pass begins while buckets travel, and
// waits for each layer's when it comes to that layer: the arithmetic is that of the same buckets
// awaited at the end, and the order too, only the waiting is later. Jayarajan et al., "Priority-based Parameter Propagation for
// Distributed DNN Training", MLSys 2019; Peng et al., ByteScheduler, SOSP 2019.

// Need returns when parameter i has its value of the last step: when its bucket has arrived
// and DDPConfig.Update has been called for it. Give it to a model that calls it before it uses
// each parameter, such as nn.Net's BeforeUse. Without DDPConfig.Update it does nothing.
//
// An error is Wait's, and as with that the ranks have parted ways; some parameters then are of
// the last step and some of the one before.
func (d *DDP) Need(i int) error {
	switch {
	case d.c.Update == nil:
		return nil
	case i < 0 || i >= len(d.params):
		return fmt.Errorf("trainer: parameter %d is needed, there are %d", i, len(d.params))
	case !d.flying() || !d.rebuilt: // a step that is not whole, or the first, is Wait's
		return d.arrive()
	case d.at[i].bucket < 0 || d.buckets[d.at[i].bucket].landed:
		return nil
	}
	if err := d.land(d.buckets[d.at[i].bucket]); err != nil {
		defer d.recycle()
		return d.landAll(err)
	}
	if !slices.ContainsFunc(d.buckets, func(b *flight) bool { return !b.landed }) {
		d.recycle()
	}
	return nil
}

// flying is whether all of a step is under way, or has landed in part. What Weigh and NoSync
// say then is of the step that follows.
func (d *DDP) flying() bool {
	return d.c.Update != nil && d.err == nil && len(d.order) > 0 && d.launched == len(d.buckets)
}

// arrive is Wait with Update. Between two steps it has nothing to do.
func (d *DDP) arrive() error {
	if d.err == nil && len(d.order) == 0 {
		return nil
	}
	if d.flying() {
		defer d.recycle()
		return d.landAll(nil)
	}
	defer d.reset()
	if d.hold {
		return d.err
	}
	if d.err == nil {
		d.err = d.fillUnused()
	}
	return d.landAll(d.err)
}

// land waits for a bucket and updates its parameters.
func (d *DDP) land(b *flight) error {
	if err := averaged(b.work); err != nil {
		return err
	}
	b.landed = true
	for _, i := range b.params {
		if !d.c.Views && !d.inPlace {
			copyElements(d.params[i].Grad, d.slot(i))
		}
		if err := d.c.Update(i); err != nil {
			return fmt.Errorf("trainer: updating %q: %w", d.params[i].Name, err)
		}
	}
	return nil
}

// landAll lands what has not, once all of it has arrived.
func (d *DDP) landAll(err error) error {
	err = d.arrivals(err)
	for _, b := range d.buckets[:d.launched] {
		if err == nil && !b.landed {
			err = d.land(b)
		}
	}
	if err != nil {
		return err
	}
	return d.between()
}

// departed forgets what was said of a step when its last bucket is on its way.
func (d *DDP) departed() {
	if d.flying() {
		d.weight, d.idle = 0, false
		clear(d.held)
	}
}

// refuseUpdate is why a configuration cannot have Update: what it asks for is known, or sent,
// only when a step has ended.
func (c DDPConfig) refuseUpdate() error {
	if c.Update != nil && (c.FindUnused || c.Static || c.Uneven != EvenOnly || len(c.Buffers) > 0) {
		return errors.New("trainer: DDPConfig: Update goes without FindUnused, Static, Uneven and Buffers")
	}
	return nil
}
