package gpu

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// AllReduceAcross is an all-reduce among the GPUs of several hosts, of each of which c is
// the communicator. It goes in three steps: the members of a host reduce x, each of the
// first parts of them a part; across reduces a part with those of the other hosts'
// members of the same rank, as a group of package ops does; and the members give each
// other their parts. So a host's GPUs send over the network side by side, and no element
// twice.
//
// parts is the same on all hosts: the number of GPUs of the host that has the fewest, or
// less. Members of a higher rank take part in the first step and the last. The parts of
// x are as equal as can be, whatever its length.
//
// op is any of tensor.Sum, Product, Min and Max. x is on the communicator's device, and
// is there reduced, for the host too, when the call returns.
func (c *Comm) AllReduceAcross(ctx context.Context, s *Stream, x tensor.Tensor, op tensor.Op, parts int,
	across func(part tensor.Tensor) error) error {
	if parts < 1 || parts > c.size {
		return fmt.Errorf("gpu: %d parts among %d members", parts, c.size)
	}
	if op == tensor.Avg {
		return fmt.Errorf("%w: %v of averages; take the sum", ErrNotNCCL, op)
	}
	part := func(k int) tensor.Tensor { return x.Slice(k*x.Len()/parts, (k+1)*x.Len()/parts) }
	for k := range parts {
		if err := c.Reduce(ctx, s, part(k), part(k), op, k); err != nil {
			return err
		}
	}
	if c.rank < parts {
		if err := c.Finish(ctx, s); err != nil {
			return err
		}
		if err := across(part(c.rank)); err != nil {
			// The other members wait for this part, until they learn that it will not come.
			return errors.Join(err, c.Abort())
		}
	}
	for k := range parts {
		if err := c.Broadcast(ctx, s, part(k), k); err != nil {
			return err
		}
	}
	return c.Finish(ctx, s)
}
