package trainer

import (
	"cmp"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// Uneven says whether ranks may run out of batches at different times, and what
// an average is then.
type Uneven uint8

const (
	// EvenOnly is for ranks that take equally many steps.
	EvenOnly Uneven = iota
	// DivideByAll goes on dividing by the number of ranks, those without batches too:
	// a sample counts for as much as ever.
	DivideByAll
	// DivideByActive divides by the number of ranks that have a batch, so that steps
	// stay as large.
	DivideByActive
)

// A rollCall is who takes part in a step, one byte a rank.
type rollCall struct {
	present []uint8
	work    *ops.Work
}

// call asks who takes part in this step, once. It does not wait.
func (d *DDP) call() {
	if d.c.Uneven == EvenOnly || d.roll != nil {
		return
	}
	own := []uint8{1}
	if d.joined {
		own[0] = 0
	}
	r := &rollCall{present: make([]uint8, d.g.Size())}
	r.work = d.g.AllGather(d.ctx, tensor.Of(r.present), tensor.Of(own))
	d.roll = r
}

// answered waits for the answers and returns how many take part.
func (d *DDP) answered() (int, error) {
	if err := d.roll.work.Wait(); err != nil {
		return 0, fmt.Errorf("trainer: asking who takes part: %w", err)
	}
	n := 0
	for _, p := range d.roll.present {
		n += min(int(p), 1)
	}
	return n, nil
}

// share is what this rank's gradients count for.
func (d *DDP) share() (float64, error) {
	d.call()
	if d.weight != 0 || d.c.Uneven != DivideByActive {
		return cmp.Or(d.weight, 1/float64(d.g.Size())), nil
	}
	n, err := d.answered()
	return 1 / float64(max(n, 1)), err
}

// source is the rank whose buffers count: the first that takes part.
func (d *DDP) source() (int, error) {
	if d.roll == nil {
		return 0, nil
	}
	if _, err := d.answered(); err != nil {
		return 0, err
	}
	return max(0, slices.IndexFunc(d.roll.present, func(p uint8) bool { return p != 0 })), nil
}

// Join is for a rank that has no more batches while others may: it takes part in
// their steps with gradients of zero until nobody has. Every rank calls it at the
// end of its own, with DDPConfig.Uneven set. After each step the gradients here
// are those of all ranks, and step, the optimiser's, makes the same of them, so
// that replicas stay bit-identical; torch's join copies one to all at the end
// instead.
//
// Afterwards the DDP is ready for another epoch.
func (d *DDP) Join(step func() error) error {
	if d.c.Uneven == EvenOnly {
		return fmt.Errorf("trainer: Join needs DDPConfig.Uneven")
	}
	d.joined = true
	defer func() { d.joined = false }()
	for {
		d.call()
		n, err := d.answered()
		if err != nil || n == 0 {
			d.reset()
			return err
		}
		d.Idle()
		if err := d.Wait(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
}
