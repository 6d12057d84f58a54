package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// ncclSteps are a communicator of one rank, which every card can be, with each operation,
// and one that has to be aborted.
var ncclSteps = []step{
	{"nccl join", (*checking).join},
	{"nccl all_reduce", (*checking).allReduces},
	{"nccl reduce", one(func(ctx context.Context, c *checking, dst, src tensor.Tensor) error {
		return c.comm.Reduce(ctx, c.s, dst, src, tensor.Sum, 0)
	})},
	{"nccl reduce_scatter", one(func(ctx context.Context, c *checking, dst, src tensor.Tensor) error {
		return c.comm.ReduceScatter(ctx, c.s, dst, src, tensor.Max)
	})},
	{"nccl all_gather", one(func(ctx context.Context, c *checking, dst, src tensor.Tensor) error {
		return c.comm.AllGather(ctx, c.s, dst, src)
	})},
	{"nccl broadcast", one(func(ctx context.Context, c *checking, dst, src tensor.Tensor) error {
		return errors.Join(tensor.Copy(dst, src), c.comm.Broadcast(ctx, c.s, dst, 0))
	})},
	{"nccl send, recv", one(func(ctx context.Context, c *checking, dst, src tensor.Tensor) error {
		return c.comm.Exchange(ctx, c.s, Transfer{Peer: 0, Send: src, Recv: dst})
	})},
	{"nccl part", (*checking).part},
	{"nccl abort", (*checking).abort},
}

// join makes the communicator.
func (c *checking) join(ctx context.Context) (string, error) {
	n, err := nccl()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, mendNCCL)
	}
	id, err := NewUniqueID()
	if err != nil {
		return "", err
	}
	if c.comm, err = NewComm(ctx, c.d, id, 0, 1); err != nil {
		return "", err
	}
	c.met = true
	return fmt.Sprintf("NCCL %v at %s, one rank", ncclVersion(n.version), n.path), nil
}

// joined makes the communicator anew that the step before had to abort. If there was none
// ever, this step is not tried.
func (c *checking) joined(ctx context.Context) error {
	if !c.met {
		return fmt.Errorf("%w: there is no communicator", ErrNotTried)
	}
	if c.comm != nil {
		return nil
	}
	_, err := c.join(ctx)
	return err
}

// failed aborts the communicator, in which something may be under way for ever.
func (c *checking) failed(err error) error {
	comm := c.comm
	c.comm = nil
	return errors.Join(err, comm.Abort())
}

// one is a step of an operation that among one rank copies its source.
func one(f func(ctx context.Context, c *checking, dst, src tensor.Tensor) error) func(*checking, context.Context) (string, error) {
	return func(c *checking, ctx context.Context) (string, error) {
		if err := c.joined(ctx); err != nil {
			return "", err
		}
		for _, t := range checkTypes() {
			if _, ok := ncclTypes[t]; !ok {
				continue
			}
			err := c.reduced(ctx, t, tensor.Op{}, func(dst, src tensor.Tensor) error { return f(ctx, c, dst, src) })
			if err != nil {
				return "", fmt.Errorf("%v: %w", t, err)
			}
		}
		return fmt.Sprintf("%d types", len(ncclTypes)), nil
	}
}

// allReduces tries every reduction that NCCL has, of each type.
func (c *checking) allReduces(ctx context.Context) (string, error) {
	if err := c.joined(ctx); err != nil {
		return "", err
	}
	tried := 0
	for _, t := range checkTypes() {
		if _, ok := ncclTypes[t]; !ok {
			continue
		}
		for _, op := range checkOps {
			_, plain := ncclOps[op]
			if _, premul := op.Factor(); op.Check(t) != nil || !plain && !premul {
				continue
			}
			err := c.reduced(ctx, t, op, func(dst, src tensor.Tensor) error { return c.comm.AllReduce(ctx, c.s, dst, src, op) })
			if err != nil {
				return "", fmt.Errorf("%v of %v: %w", op, t, err)
			}
			tried++
		}
	}
	return fmt.Sprintf("%d reductions", tried), nil
}

// reduced has f move elements from one place on the device to another, and compares what
// is there with what the reduction makes of them in a world of one.
func (c *checking) reduced(ctx context.Context, t tensor.DType, op tensor.Op, f func(dst, src tensor.Tensor) error) (err error) {
	const n = 203
	src, err := c.d.Alloc(t, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Memory().(*Memory).Close()) }()
	dst, err := c.d.Alloc(t, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Memory().(*Memory).Close()) }()
	var p []byte
	for i := range n {
		p = append(p, scalar(t, float64(i%5))...)
	}
	if _, err := src.WriteAt(p, 0); err != nil {
		return err
	}
	if err := f(dst, src); err != nil {
		return c.failed(err)
	}
	if err := c.comm.Finish(ctx, c.s); err != nil {
		return c.failed(err)
	}
	if op.Valid() {
		err = op.Before(tensor.In(tensor.Host(p), t, n))
	}
	got := make([]byte, len(p))
	if _, e := dst.ReadAt(got, 0); e != nil || err != nil {
		return errors.Join(err, e)
	}
	if !bytes.Equal(got, p) {
		return errors.New("gpu: NCCL's result is another than the host's")
	}
	return nil
}

// part takes leave of the communicator.
func (c *checking) part(ctx context.Context) (string, error) {
	if err := c.joined(ctx); err != nil {
		return "", err
	}
	comm := c.comm
	c.comm = nil
	return "", comm.Close()
}

// absence is for how many budgets a member is waited for that does not come.
const absence = 5

// abort waits for a second member in vain, and finds the device as good as before.
func (c *checking) abort(ctx context.Context) (string, error) {
	id, err := NewUniqueID()
	if err != nil {
		return "", err
	}
	absent := errors.New("gpu: nobody came")
	waiting, cancel := context.WithTimeoutCause(ctx, absence*c.Budget, absent)
	defer cancel()
	comm, err := NewComm(waiting, c.d, id, 0, 2)
	if err == nil {
		return "", errors.Join(errors.New("gpu: a communicator of two has one member"), comm.Abort())
	}
	if !errors.Is(err, absent) {
		return "", err
	}
	_, err = c.memory(ctx)
	return fmt.Sprintf("given up after %v", absence*c.Budget), err
}
