package fit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"peermesh/trainer"
)

// Data yields batches: a loader, a stream, or [Samples]. All ranks have the same.
type Data[B any] interface {
	// Len is the number of samples of an epoch, of all ranks together, or where nobody
	// knows what it is not above.
	Len() int
	// Batches yields a rank's batches from a place in an epoch to the epoch's end. All
	// ranks get equally many, and each of them has one Total on all. A batch is valid
	// until the next is asked for. ctx ends with the world.
	//
	// From the same place come the same batches: a run that resumes, or goes on in
	// another world, asks again from where it was. To validate, the order is that of
	// epoch 0, and ranks may get different numbers of batches.
	Batches(ctx context.Context, from Place) iter.Seq2[Batch[B], error]
}

// A Place is one in an epoch of data, for one rank of a world.
type Place struct {
	Epoch    int64
	Consumed int64 // samples of the epoch that all ranks together have had before
	Rank     int
	Size     int // of the world
}

// A Batch is what one rank computes at once.
type Batch[B any] struct {
	Items   B
	Samples int // in Items; if none, Items is not looked at
	Total   int // samples of all ranks' batches of this step, at least one

	last bool // no other follows in this epoch, whatever the data's length says
}

// Samples is data that can be had by index, dealt by an [trainer.ElasticSampler]: each
// sample once an epoch, whatever the world. It loads a batch when that is asked for.
type Samples[B any] struct {
	N    int // how many there are
	Deal trainer.ElasticConfig
	Load func(ctx context.Context, indices []int) (B, error)
}

// Len is N.
func (s Samples[B]) Len() int { return s.N }

func (s Samples[B]) dropsLast() bool { return s.Deal.DropLast }

// Batches deals and loads.
func (s Samples[B]) Batches(ctx context.Context, from Place) iter.Seq2[Batch[B], error] {
	return func(yield func(Batch[B], error) bool) {
		if s.Load == nil {
			yield(Batch[B]{}, errors.New("fit: Samples without Load"))
			return
		}
		for share, err := range shares(s.N, s.Deal, from) {
			b := outline[B](share)
			if err == nil && b.Samples > 0 {
				b.Items, err = s.Load(ctx, share.Indices)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// outline is the batch of a share, without its items.
func outline[B any](s trainer.Share) Batch[B] {
	return Batch[B]{Samples: len(s.Indices), Total: s.Total, last: s.Last}
}

// shares is what a rank is dealt from a place on.
func shares(n int, c trainer.ElasticConfig, from Place) iter.Seq2[trainer.Share, error] {
	return func(yield func(trainer.Share, error) bool) {
		sampler, err := trainer.NewElasticSampler(n, c)
		if err != nil {
			yield(trainer.Share{}, err)
			return
		}
		p := trainer.Progress{Epoch: from.Epoch, Consumed: from.Consumed}
		for {
			share, more := sampler.Deal(p, from.Rank, from.Size)
			if !more || !yield(share, nil) {
				return
			}
			p.Consumed += int64(share.Total)
		}
	}
}

// limited is the first batches of an epoch, of the first one if it is always the same.
type limited[B any] struct {
	Data[B]
	batches int
	first   bool
}

// most is how many batches of a rank an epoch has at most.
func (l limited[B]) most() int {
	if d, ok := l.Data.(limited[B]); ok {
		return min(l.batches, d.most())
	}
	return l.batches
}

func (l limited[B]) Batches(ctx context.Context, from Place) iter.Seq2[Batch[B], error] {
	start := from
	start.Consumed = 0 // batches are counted from the epoch's start
	if l.first {
		start.Epoch = 0
	}
	return func(yield func(Batch[B], error) bool) {
		var n int
		var at int64
		for b, err := range l.Data.Batches(ctx, start) {
			skip := at < from.Consumed
			at += int64(b.Total)
			n++
			b.last = b.last || n == l.batches
			if err != nil || !skip {
				if !yield(b, err) || err != nil {
					return
				}
			}
			if n == l.batches {
				return
			}
		}
	}
}

// limit is d, or the first n batches of it if n is positive.
func limit[B any](d Data[B], n int, first bool) Data[B] {
	if d == nil || n == 0 {
		return d
	}
	return limited[B]{d, n, first}
}

// check refuses a batch that would not add up.
func (b Batch[B]) check() error {
	if b.Samples < 0 || b.Total < 1 || b.Samples > b.Total || b.Total > trainer.MaxSamples {
		return fmt.Errorf("fit: a batch of %d samples, of %d on all ranks", b.Samples, b.Total)
	}
	return nil
}
