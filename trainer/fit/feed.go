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

	batch Batch[B] // that the stream has yielded last
	err   error    // in place of it
	ahead *yielded[B]
}

// A yielded batch is what the stream has given before its step: a batch, an error or the end.
type yielded[B any] struct {
	batch Batch[B]
	err   error
	more  bool
}

// Len is the data's.
func (f *feed[B]) Len() int { return f.data.Len() }

// Deal takes a step's first batch off the stream, whose Total is the share's. An error
// waits for the step.
func (f *feed[B]) Deal(p trainer.Progress, rank, size int) (trainer.Share, bool) {
	if at := (Place{p.Epoch, p.Consumed, rank, size}); f.next == nil || f.at != at {
		f.close()
		f.at = at
		f.next, f.stop = iter.Pull2(f.data.Batches(f.ctx, at))
	}
	more := f.pull()
	return trainer.Share{Progress: p, Total: f.batch.Total, Last: f.ends()}, more
}

// peek is the batch that will be pulled next, if there is one without fault. Nothing else
// changes: the step at hand may have to be taken again. As a batch is valid until the next is
// asked for, the one at hand has had its use.
func (f *feed[B]) peek() (Batch[B], bool) {
	if f.next == nil {
		return Batch[B]{}, false
	}
	if f.ahead == nil {
		defer lap(f.spent)()
		f.ahead = new(yielded[B])
		f.ahead.batch, f.ahead.err, f.ahead.more = f.next()
	}
	y := f.ahead
	return y.batch, y.more && y.err == nil && y.batch.check() == nil
}

// pull takes the next batch.
func (f *feed[B]) pull() bool {
	f.peek()
	b, err, more := f.ahead.batch, f.ahead.err, f.ahead.more
	f.ahead = nil
	if !more {
		return false
	}
	if err == nil {
		err = b.check()
	}
	if err != nil {
		f.close()
		b = Batch[B]{Total: 1}
	}
	f.batch, f.err = b, err
	f.at.Consumed += int64(b.Total)
	return true
}

// perEpoch is the number of samples of the epoch at hand, of all ranks. Where batches are
// limited that is what as many as the one at hand have, as all are alike but for the last.
func (f *feed[B]) perEpoch() int {
	if f.batch.last {
		return int(f.at.Consumed)
	}
	n := whole(f.data, f.batch.Total)
	if l, ok := f.data.(limited[B]); ok && l.most() <= n/f.batch.Total {
		return l.most() * f.batch.Total
	}
	return n
}

// whole is the number of samples of an epoch without a limit, in steps of so many: of data
// that drop what is left over, as far as that can be known.
func whole[B any](d Data[B], step int) int {
	if l, ok := d.(limited[B]); ok {
		return whole(l.Data, step)
	}
	n := d.Len()
	if d, ok := d.(interface{ dropsLast() bool }); ok && d.dropsLast() && n >= step {
		n -= n % step
	}
	return n
}

// last is whether the step ends with the batch at hand, which is its k-th from 0, as far
// as that can be known before the stream ends.
func (f *feed[B]) last(k int) bool {
	return k+1 >= f.accumulate || f.ends()
}

// ends is whether the batch at hand is the epoch's last, as far as that can be known.
func (f *feed[B]) ends() bool { return f.batch.last || f.at.Consumed >= int64(f.data.Len()) }

// close ends the stream, if one is open.
func (f *feed[B]) close() {
	if f.stop != nil {
		f.stop()
	}
	f.next, f.stop, f.ahead = nil, nil, nil
}
