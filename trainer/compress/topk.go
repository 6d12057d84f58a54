package compress

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// DefaultFraction is the part of a bucket's elements that a TopK sends.
const DefaultFraction = 0.01

// TopK is a hook that sends, of each bucket, the elements of the greatest magnitude, with
// their places; the others stay behind as feedback and grow until they are sent (Lin et
// al., "Deep Gradient Compression", ICLR 2018). Of two that are equal the earlier goes
// first, and what is no number is the greatest of all, so that all ranks see it.
//
// Every rank sends its own elements to all: 8 bytes each, or 12 of float64, from every
// rank to every rank. So what is sent grows with the number of ranks, where a Coded's
// hardly does.
type TopK struct {
	// Fraction is how many of the elements are sent, rounded up; zero is DefaultFraction.
	// All ranks have the same.
	Fraction float64
	Feedback

	picker picker
}

// State is empty: feedback is each rank's own.
func (k *TopK) State() []*trainer.Param { return nil }

// Reduce is trainer.Hook's.
func (k *TopK) Reduce(ctx context.Context, g *ops.Group, b trainer.Bucket) trainer.Pending {
	fraction := cmp.Or(k.Fraction, DefaultFraction)
	if !(fraction > 0 && fraction <= 1) {
		return trainer.Failed(fmt.Errorf("compress: TopK: a fraction of %v: want more than 0, at most 1", k.Fraction))
	}
	if b.Data.Len() > math.MaxUint32 {
		return trainer.Failed(fmt.Errorf("compress: TopK: a bucket of %d elements: at most %d", b.Data.Len(), uint32(math.MaxUint32)))
	}
	if g.Size() == 1 {
		return g.AllReduce(ctx, b.Data, tensor.Sum)
	}
	rest, err := k.addTo(b)
	if err != nil {
		return trainer.Failed(fmt.Errorf("compress: TopK: %w", err))
	}
	count := int(math.Ceil(fraction * float64(b.Data.Len())))
	if b.Data.DType() == tensor.Float64 {
		return exchange(ctx, g, host[float64](b.Data), host[float64](rest), k.picker.pick, count)
	}
	return exchange(ctx, g, host[float32](b.Data), host[float32](rest), k.picker.pick, count)
}

// exchange sends the picked elements of x, leaves the others in rest, and then has in x
// what all ranks sent, added up in the order of the ranks.
func exchange[T real](ctx context.Context, g *ops.Group, x, rest []T, pick func(keys []uint32, count int) []uint32, count int) trainer.Pending {
	keys := make([]uint32, len(x))
	for i, v := range x {
		keys[i] = bitsOf(v)
	}
	copy(rest, x)
	for i, key := range keys {
		if key >= infinite {
			rest[i] = 0
		}
	}
	own := make([]byte, 0, count*entry[T]())
	for _, i := range pick(keys, count) {
		own = appendEntry(own, i, x[i])
		rest[i] = 0
	}
	all := make([]byte, len(own)*g.Size())
	return &trainer.Later{First: g.AllGather(ctx, tensor.Of(all), tensor.Of(own)), Then: func() error {
		clear(x)
		return addEntries(x, all)
	}}
}

// entry is the length of an element on the wire: its place as a uint32 and its bits,
// little-endian.
func entry[T real]() int {
	if _, double := any(T(0)).(float64); double {
		return 12
	}
	return 8
}

func appendEntry[T real](p []byte, i uint32, v T) []byte {
	p = binary.LittleEndian.AppendUint32(p, i)
	if entry[T]() == 12 {
		return binary.LittleEndian.AppendUint64(p, math.Float64bits(float64(v)))
	}
	return binary.LittleEndian.AppendUint32(p, math.Float32bits(float32(v)))
}

// addEntries adds elements that may come from anybody.
func addEntries[T real](x []T, p []byte) error {
	size := entry[T]()
	for ; len(p) >= size; p = p[size:] {
		i := binary.LittleEndian.Uint32(p)
		if uint64(i) >= uint64(len(x)) {
			return fmt.Errorf("compress: TopK: a rank sent element %d of a bucket of %d", i, len(x))
		}
		if size == 12 {
			x[i] += T(math.Float64frombits(binary.LittleEndian.Uint64(p[4:])))
		} else {
			x[i] += T(math.Float32frombits(binary.LittleEndian.Uint32(p[4:])))
		}
	}
	if len(p) > 0 {
		return fmt.Errorf("compress: TopK: %d bytes of an element", len(p))
	}
	return nil
}
