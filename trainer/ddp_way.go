package trainer

import (
	"fmt"

	"peermesh/ops"
)

// A group's collectives run one after the other. On a link of 20 ms and 200 Mbit/s a bucket
// of 75 kB takes 3 ms of bytes and 40 ms of latency, and behind a large one all of that shows
// at the end of each step. In a group of its own it goes beside the large one. The last may be
// small, and soon after one that is as late as it is: so it has another to itself.

// pave makes these groups, if they are wanted and of use.
func (d *DDP) pave() (err error) {
	if !d.c.Abreast || d.g.Size() == 1 {
		return nil
	}
	if d.second, err = d.g.SplitBy(d.ctx, 0, 0); err != nil {
		return fmt.Errorf("trainer: a second group: %w", err)
	}
	if d.c.LastBucket == 0 {
		return nil
	}
	if d.third, err = d.g.SplitBy(d.ctx, 0, 0); err != nil {
		return fmt.Errorf("trainer: a third group: %w", err)
	}
	return nil
}

// way is the group that bucket k travels by. It is a matter of the buckets alone, so in each group
// the ranks issue the same operations in the same order.
func (d *DDP) way(k int) *ops.Group {
	if d.third != nil && k > 0 && k == len(d.buckets)-1 {
		return d.third
	}
	if d.second != nil && k%2 == 1 {
		return d.second
	}
	return d.g
}

// Err is what has gone wrong in the step so far, which Wait will return. Who sends something
// in the same group between Ready and Wait asks before that, and after an error does not.
func (d *DDP) Err() error { return d.err }
