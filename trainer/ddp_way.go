package trainer

import (
	"fmt"

	"peermesh/ops"
)

// A group's collectives run one after the other. On a link of 20 ms and 200 Mbit/s a bucket
// of 75 kB takes 3 ms of bytes and 40 ms of latency, and behind a large one all of that shows
// at the end of each step. In a group of its own it goes beside the large one.

// pave makes the second group, if one is wanted and of use.
func (d *DDP) pave() (err error) {
	if !d.c.Abreast || d.g.Size() == 1 {
		return nil
	}
	if d.second, err = d.g.SplitBy(d.ctx, 0, 0); err != nil {
		return fmt.Errorf("trainer: a second group: %w", err)
	}
	return nil
}

// way is the group that bucket k travels by. It is a matter of k alone, so in either group the
// ranks issue the same operations in the same order.
func (d *DDP) way(k int) *ops.Group {
	if d.second != nil && k%2 == 1 {
		return d.second
	}
	return d.g
}

// Err is what has gone wrong in the step so far, which Wait will return. Who sends something
// in the same group between Ready and Wait asks before that, and after an error does not.
func (d *DDP) Err() error { return d.err }
