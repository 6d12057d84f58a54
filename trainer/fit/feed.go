package fit

import (
	"context"
	"iter"
	"time"

	"peermesh/trainer"
)

// A feed turns a rank's stream of batches into what a [trainer.Elastic] asks for: the
// next step's, whichever step that is. While steps follow each other it goes on with one
// stream; when a step is to be taken again, or in another world, it begins a new one.
type feed[B any] struct {
	data       Data[B]
	accumulate int
	ctx        context.Context // the world's
	spent      *time.Duration  // on waiting for data

	at   Place // where the stream goes on
	next func() (Batch[B], error, bool)
	stop func()

	batches []Batch[B] // of the step at hand
	err     error      // in place of them
}

// Len is the data's.
func (f *feed[B]) Len() int { return f.data.Len() }

// Deal takes the batches of a step off the stream. An error waits for the step.
func (f *feed[B]) Deal(p trainer.Progress, rank, size int) (trainer.Share, bool) {
	defer lap(f.spent)()
	if at := (Place{p.Epoch, p.Consumed, rank, size}); f.next == nil || f.at != at {
		f.close()
		f.at = at
		f.next, f.stop = iter.Pull2(f.data.Batches(f.ctx, at))
	}
	f.batches, f.err = f.batches[:0], nil
	share := trainer.Share{Progress: p}
	for len(f.batches) < f.accumulate {
		b, err, more := f.next()
		if !more {
			break
		}
		if err == nil {
			err = b.check()
		}
		if err != nil {
			f.close()
			f.err = err
			share.Total = max(share.Total, 1)
			return share, true
		}
		f.batches = append(f.batches, b)
		share.Total += b.Total
	}
	f.at.Consumed += int64(share.Total)
	return share, len(f.batches) > 0
}

// close ends the stream, if one is open.
func (f *feed[B]) close() {
	if f.stop != nil {
		f.stop()
	}
	f.next, f.stop = nil, nil
}

// samples is how many this rank has in the step.
func (f *feed[B]) samples() int {
	n := 0
	for _, b := range f.batches {
		n += b.Samples
	}
	return n
}
