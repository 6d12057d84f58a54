package gpu

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"peermesh/ops/tensor"
)

// The operations queue on a stream, and return when NCCL has taken them; Finish
// waits for the result. Tensors are on the communicator's device. dst and src may be
// one tensor. An operation or element type that NCCL lacks is ErrNotNCCL.
//
// The values are NCCL's: the order of its sums differs from that of a schedule, and
// whether NaN wins in Min and Max is not said.

// AllReduce leaves the reduction of all members' src, of one length, in dst.
func (c *Comm) AllReduce(ctx context.Context, s *Stream, dst, src tensor.Tensor, op tensor.Op) error {
	return c.reduce(ctx, s, dst, src, src.Len(), src.Len(), op, func(o call) error {
		return c.begin("ncclAllReduce", o.src, o.dst, o.n, o.dtype, o.op, c.comm, o.stream)
	})
}

// Reduce leaves the reduction of all members' src in root's dst; that of others is
// left as it is.
func (c *Comm) Reduce(ctx context.Context, s *Stream, dst, src tensor.Tensor, op tensor.Op, root int) error {
	if err := c.member(root); err != nil {
		return err
	}
	return c.reduce(ctx, s, dst, src, src.Len(), src.Len(), op, func(o call) error {
		return c.begin("ncclReduce", o.src, o.dst, o.n, o.dtype, o.op, uintptr(root), c.comm, o.stream)
	})
}

// ReduceScatter reduces all members' src, which has Size parts as long as dst, and
// leaves the part of a member's rank in its dst.
func (c *Comm) ReduceScatter(ctx context.Context, s *Stream, dst, src tensor.Tensor, op tensor.Op) error {
	return c.reduce(ctx, s, dst, src, dst.Len(), c.size*dst.Len(), op, func(o call) error {
		return c.begin("ncclReduceScatter", o.src, o.dst, o.n, o.dtype, o.op, c.comm, o.stream)
	})
}

// AllGather leaves all members' src, of one length, in dst one after the other.
func (c *Comm) AllGather(ctx context.Context, s *Stream, dst, src tensor.Tensor) error {
	return c.move(ctx, s, dst, src, c.size*src.Len(), src.Len(), func(o call) error {
		return c.begin("ncclAllGather", o.src, o.dst, o.n, o.dtype, c.comm, o.stream)
	})
}

// Broadcast leaves root's x in everyone's.
func (c *Comm) Broadcast(ctx context.Context, s *Stream, x tensor.Tensor, root int) error {
	if err := c.member(root); err != nil {
		return err
	}
	return c.move(ctx, s, x, x, x.Len(), x.Len(), func(o call) error {
		return c.begin("ncclBroadcast", o.src, o.dst, o.n, o.dtype, uintptr(root), c.comm, o.stream)
	})
}

// A Transfer is what a member sends to another, or receives from it, or both.
type Transfer struct {
	Peer       int
	Send, Recv tensor.Tensor // of length 0: nothing
}

// maxTransfers bounds an Exchange: two with every rank.
const maxTransfers = 2 * maxRanks

// Exchange makes transfers at once, none of which waits for another. What a member
// sends to another, that one receives in an Exchange at the same time.
func (c *Comm) Exchange(ctx context.Context, s *Stream, transfers ...Transfer) error {
	if len(transfers) > maxTransfers {
		return fmt.Errorf("gpu: %d transfers, at most %d", len(transfers), maxTransfers)
	}
	for _, t := range transfers {
		if err := c.member(t.Peer); err != nil {
			return err
		}
	}
	return c.queue(ctx, s, func(stream uintptr) error {
		if err := c.begin("ncclGroupStart"); err != nil {
			return err
		}
		var errs []error
		for _, t := range transfers {
			errs = append(errs, c.transfer("ncclSend", t.Send, t.Peer, stream), c.transfer("ncclRecv", t.Recv, t.Peer, stream))
		}
		// The group ends in any case: it is the thread's.
		return errors.Join(append(errs, c.begin("ncclGroupEnd"))...)
	})
}

func (c *Comm) transfer(f string, x tensor.Tensor, peer int, stream uintptr) error {
	if x.Len() == 0 {
		return nil
	}
	dtype, each := ncclMove(x.DType())
	return c.address(x, func(address uintptr) error {
		return c.begin(f, address, uintptr(x.Len())*each, dtype, uintptr(peer), c.comm, stream)
	})
}

// A call is the arguments of an NCCL operation.
type call struct{ src, dst, n, dtype, op, stream uintptr }

func (c *Comm) member(rank int) error {
	if rank < 0 || rank >= c.size {
		return fmt.Errorf("gpu: rank %d in a communicator of %d", rank, c.size)
	}
	return nil
}

// queue has f queue something on a stream.
func (c *Comm) queue(ctx context.Context, s *Stream, f func(stream uintptr) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.comm == 0 {
		return ErrClosed
	}
	return s.h.use(func(stream uintptr) error {
		return c.locked(ctx, func() error { return f(stream) })
	})
}

// lengths checks those of a call's tensors.
func lengths(dst, src tensor.Tensor, dstLen, srcLen int) error {
	if dst.DType() != src.DType() || dst.Len() != dstLen || src.Len() != srcLen {
		return fmt.Errorf("gpu: %v to %v: %d elements to %d are wanted", src, dst, srcLen, dstLen)
	}
	return nil
}

// move queues an operation without arithmetic, of n elements.
func (c *Comm) move(ctx context.Context, s *Stream, dst, src tensor.Tensor, dstLen, srcLen int, f func(call) error) error {
	if err := lengths(dst, src, dstLen, srcLen); err != nil {
		return err
	}
	dtype, each := ncclMove(src.DType())
	return c.queue(ctx, s, func(stream uintptr) error {
		return c.address(src, func(from uintptr) error {
			return c.address(dst, func(to uintptr) error {
				return f(call{src: from, dst: to, n: uintptr(srcLen) * each, dtype: dtype, stream: stream})
			})
		})
	})
}

// reduce queues an operation that reduces to dstLen elements.
func (c *Comm) reduce(ctx context.Context, s *Stream, dst, src tensor.Tensor, dstLen, srcLen int, op tensor.Op, f func(call) error) error {
	if err := errors.Join(op.Check(src.DType()), lengths(dst, src, dstLen, srcLen)); err != nil {
		return err
	}
	dtype, ok := ncclTypes[src.DType()]
	code, plain := ncclOps[op]
	factor, premul := op.Factor()
	if !ok || !plain && !premul {
		return fmt.Errorf("%w: %v of %v", ErrNotNCCL, op, src.DType())
	}
	return c.queue(ctx, s, func(stream uintptr) error {
		o := call{n: uintptr(dstLen), dtype: dtype, op: code, stream: stream}
		run := func() error {
			return c.address(src, func(from uintptr) error {
				return c.address(dst, func(to uintptr) error {
					o.src, o.dst = from, to
					return f(o)
				})
			})
		}
		if plain {
			return run()
		}
		return c.premul(&o, src.DType(), factor, run)
	})
}

// premul makes NCCL's own operation for a factor, for the time of a call.
func (c *Comm) premul(o *call, t tensor.DType, factor float64, run func() error) error {
	var p [8]byte
	copy(p[:], scalar(t, factor))
	var op int32
	const onHost = 1 // of ncclScalarResidence_t: the factor is read at once
	err := c.begin("ncclRedOpCreatePreMulSum", uintptr(unsafe.Pointer(&op)), uintptr(unsafe.Pointer(&p)), o.dtype, onHost, c.comm)
	if err != nil {
		return err
	}
	o.op = uintptr(op)
	return errors.Join(run(), c.begin("ncclRedOpDestroy", o.op, c.comm))
}

// scalar is a factor as an element of type t.
func scalar(t tensor.DType, factor float64) []byte {
	p := make([]byte, t.Size())
	one := tensor.In(tensor.Host(p), t, 1)
	unit := map[tensor.DType][]byte{
		tensor.Float16: {0, 0x3c}, tensor.BFloat16: {0x80, 0x3f}, tensor.Float32: {0, 0, 0x80, 0x3f},
		tensor.Float64: {0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
	}[t]
	if unit == nil {
		p[0] = 1
	}
	copy(p, unit)
	// One times the factor, by the arithmetic that knows how to convert it. The type
	// has been checked, so that this cannot fail.
	if err := tensor.PremulSum(factor).Before(one); err != nil {
		panic(err)
	}
	return p
}
