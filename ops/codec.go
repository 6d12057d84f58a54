package ops

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"peermesh/ops/tensor"
)

// MaxBlock bounds the block of a Codec, in elements, and eight times as much in bytes.
const MaxBlock = 1 << 16

// A Codec turns floats into fewer bytes and back, with some loss. It works in blocks of
// a fixed number of elements that become a fixed number of bytes, so that the length of
// a message is arithmetic which all ranks do alike. Package trainer/compress has some.
//
// Its methods are called from several goroutines. The same bytes decode to the same bits
// on every machine, and any bytes to something: they may come from anybody.
type Codec interface {
	// Name is the same on ranks whose bytes mean the same: it has every setting in it.
	Name() string
	// Block is how many elements are encoded together, and in how many bytes. It never
	// changes.
	Block() (elements, bytes int)

	// Encode32 and Encode64 write the blocks of src one after the other. The last of them
	// may be short of elements and has all its bytes even so.
	Encode32(dst []byte, src []float32)
	Encode64(dst []byte, src []float64)
	// Decode32 and Decode64 are the reverse. src has the blocks that dst has begun.
	Decode32(dst []float32, src []byte)
	Decode64(dst []float64, src []byte)
}

// EncodedBytes is how many bytes a codec makes of n elements: whole blocks.
func EncodedBytes(c Codec, n int) int64 {
	elements, bytes := c.Block()
	return int64(n+elements-1) / int64(elements) * int64(bytes)
}

// Coding is how the elements of an AllReduceCoded travel.
type Coding struct {
	Codec Codec
	// Lost gets what this rank's encodings have rounded off, if it is given: of x's type
	// and count, overwritten. The exact sum is what AllReduceCoded leaves, before Avg
	// divides it, and the Lost of all ranks, up to the rounding of additions; so a rank
	// that adds its Lost to its next x loses nothing for good (error feedback). Elements
	// that are not finite have nothing lost. Lost is of the ops that add.
	Lost tensor.Tensor
}

// AllReduceCoded is AllReduce with encoded messages: partial sums are decoded, folded
// and encoded anew at every hop, and who has the whole sum of a chunk encodes it once,
// for all. Its bytes are passed on as they are, and the rank itself keeps what they
// decode to, so the result has the same bits on every rank. A group of one rank encodes
// nothing.
//
// What AllReduce would send in one round (one-shot), for it is so small that latency decides,
// goes in one here too: every rank encodes its part once, for all others, and each adds up what
// all parts, its own as well, decode to, in the canonical order.
//
// x is float32 or float64 in host memory, op any but a Func. Every rank gives the same
// Codec, by its Name. The schedules are those of AllReduce but for doubling, where ranks
// would round the same sum again and again.
func (g *Group) AllReduceCoded(ctx context.Context, x tensor.Tensor, op tensor.Op, c Coding) *Work {
	if err := reducible(KindAllReduceCoded, x, op); err != nil {
		return failed(err)
	}
	if err := c.check(x, op); err != nil {
		return failed(err)
	}
	if g.Rank() < 0 {
		return skipped()
	}
	p, err := g.plans.coded(x.Bytes(), EncodedBytes(c.Codec, x.Len()))
	if err != nil {
		return failed(err)
	}
	t := g.unlaid(KindAllReduceCoded, p, x.DType(), x.Len(), op, noRoot)
	t.run.call.Digest ^= digestOf(c.Codec)
	if t.run.op = op; op.Steps() {
		t.run.op = tensor.Sum // which is what they fold as
	}
	t.body = func(do func() error) error {
		return g.fold(op, x, x, func() error {
			if x.DType() == tensor.Float32 {
				return codedAs(t, p, x, c, Codec.Encode32, Codec.Decode32, do)
			}
			return codedAs(t, p, x, c, Codec.Encode64, Codec.Decode64, do)
		})
	}
	return g.issue(ctx, t)
}

// codedAs does a task's moving over elements of type T.
func codedAs[T real](t *task, p *plan, x tensor.Tensor, c Coding, encode func(Codec, []byte, []T), decode func(Codec, []T, []byte), do func() error) error {
	k := newCoding(x, c, p.name == oneShot, encode, decode)
	defer k.close()
	t.run.over(k.layout(p.chunks, p.lanes))
	if err := do(); err != nil {
		return err
	}
	if t.g.Size() == 1 {
		clear(k.lost)
		return nil
	}
	return k.finish()
}

// check refuses what no rank could encode.
func (c Coding) check(x tensor.Tensor, op tensor.Op) error {
	if c.Codec == nil {
		return argument(KindAllReduceCoded, "no codec")
	}
	if n, bytes := c.Codec.Block(); n < 1 || n > MaxBlock || bytes < 1 || bytes > 8*MaxBlock {
		return argument(KindAllReduceCoded, "codec %s makes %d bytes of %d elements: want 1 to %d, of 1 to %d",
			c.Codec.Name(), bytes, n, 8*MaxBlock, MaxBlock)
	}
	if !op.Steps() && !slices.Contains([]tensor.Op{tensor.Sum, tensor.Product, tensor.Min, tensor.Max}, op) {
		return argument(KindAllReduceCoded, "%v: want one of package tensor's own", op)
	}
	if !real32or64(x) {
		return argument(KindAllReduceCoded, "x is %v: want float32 or float64 in host memory", x)
	}
	switch {
	case c.Lost.Memory() == nil:
	case c.Lost.DType() != x.DType() || c.Lost.Len() != x.Len() || !real32or64(c.Lost):
		return argument(KindAllReduceCoded, "Lost is %v in its memory: want what x is, %v, in the host's", c.Lost, x)
	case op != tensor.Sum && !op.Steps():
		return argument(KindAllReduceCoded, "Lost of %v: it is for what adds", op)
	}
	return nil
}

func real32or64(x tensor.Tensor) bool {
	_, single := tensor.Data[float32](x)
	_, double := tensor.Data[float64](x)
	return single || double
}

// digestOf is a codec's part of a call's Digest.
func digestOf(c Codec) uint32 {
	n, bytes := c.Block()
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d %d", c.Name(), n, bytes) // a hash takes all
	return h.Sum32()
}
