package data

import (
	"errors"
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// Memory is where batches lie: a *gpu.Pins, for one. The loader frees what it was given,
// once, by the slice that it got. Its calls come from several goroutines.
type Memory interface {
	Alloc(bytes int) ([]byte, error) // exactly so many, aligned for any element
	Free(p []byte) error
}

// heap is the memory of those who bring none.
type heap struct{}

func (heap) Alloc(bytes int) ([]byte, error) { return make([]byte, bytes), nil }
func (heap) Free([]byte) error               { return nil }

const (
	// MaxPiece bounds what one Take may ask for, in bytes.
	MaxPiece = 1 << 32
	// MaxPieces bounds how often a batch may Take.
	MaxPieces = 1 << 10

	grain = 64 // sizes are rounded up to it, which aligns the heap's slices
)

// A Buffer is the memory of one batch: pieces that Collate takes by Take, always in
// the same order. They are kept from batch to batch and grow if they have to.
type Buffer struct {
	memory Memory
	pieces [][]byte
	taken  int // by the batch that is being made
}

// Take is n elements of the batch's memory, with whatever was left there: write
// all of them.
func Take[E tensor.Element](b *Buffer, n int) ([]E, error) {
	t := tensor.Of[E](nil).DType()
	if n < 0 || int64(n) > MaxPiece/int64(t.Size()) {
		return nil, fmt.Errorf("data: a batch with %d elements of type %v: at most %d bytes", n, t, int64(MaxPiece))
	}
	p, err := b.piece(n * t.Size())
	if err != nil {
		return nil, err
	}
	if t == tensor.Bool {
		clear(p) // what was left there need not be bools
	}
	x, ok := tensor.Data[E](tensor.In(tensor.Host(p), t, n))
	if !ok {
		return nil, fmt.Errorf("data: memory that is not aligned for %v", t)
	}
	return x, nil
}

// piece is the next piece, of that size.
func (b *Buffer) piece(size int) ([]byte, error) {
	k := b.taken
	if k == MaxPieces {
		return nil, fmt.Errorf("data: a batch of more than %d pieces", MaxPieces)
	}
	if k == len(b.pieces) {
		b.pieces = append(b.pieces, nil)
	}
	if len(b.pieces[k]) < size || b.pieces[k] == nil {
		if err := b.grow(k, size); err != nil {
			return nil, err
		}
	}
	b.taken++
	return b.pieces[k][:size:size], nil
}

// grow gives piece k new memory.
func (b *Buffer) grow(k, size int) error {
	old := b.pieces[k]
	b.pieces[k] = nil
	if old != nil {
		if err := b.memory.Free(old); err != nil {
			return fmt.Errorf("data: freeing %d bytes: %w", len(old), err)
		}
	}
	want := max(size, 1)
	if want <= math.MaxInt-grain {
		want = (want + grain - 1) / grain * grain
	}
	p, err := b.memory.Alloc(want)
	if err == nil && len(p) != want {
		err = errors.Join(fmt.Errorf("it gave %d", len(p)), b.memory.Free(p))
	}
	if err != nil {
		return fmt.Errorf("data: asking for %d bytes: %w", want, err)
	}
	b.pieces[k] = p
	return nil
}

// free gives all memory back.
func (b *Buffer) free() error {
	var err error
	for _, p := range b.pieces {
		if p != nil {
			err = errors.Join(err, b.memory.Free(p))
		}
	}
	b.pieces = nil
	return err
}

// Rows is a Collate for samples that are slices of one length: it lays them one
// after the other.
func Rows[E tensor.Element](b *Buffer, samples []Sample[[]E]) ([]E, error) {
	if len(samples) == 0 {
		return nil, nil
	}
	width := len(samples[0].Value)
	if width > 0 && len(samples) > MaxPiece/width {
		return nil, fmt.Errorf("data: a batch of %d rows of %d elements: at most %d bytes", len(samples), width, int64(MaxPiece))
	}
	rows, err := Take[E](b, len(samples)*width)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		if len(s.Value) != width {
			return nil, &SampleError{s.Index, fmt.Errorf("a row of %d elements, and others have %d", len(s.Value), width)}
		}
		copy(rows[k*width:], s.Value)
	}
	return rows, nil
}
