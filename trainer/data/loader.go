package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"peermesh/trainer"
)

const (
	// MaxWorkers bounds the goroutines of a Loader.
	MaxWorkers = 256
	// MaxPrefetch bounds the batches that a Loader has ready.
	MaxPrefetch = 1 << 12
)

// ErrClosed ends the loop of a Loader that is closed.
var ErrClosed = errors.New("data: the loader is closed")

// A Batcher says which samples make up each batch of an epoch. A
// *trainer.BatchSampler is one; another may put samples of like length together.
// As with a trainer.Sampler, the epoch alone decides.
type Batcher interface {
	SetEpoch(epoch int)
	Len() int // batches of an epoch, the same in all of them
	Batches() iter.Seq[[]int]
}

// Config says how a Loader makes batches of type B of samples of type T. Only
// Collate must be given.
type Config[T, B any] struct {
	// Collate makes a batch of its samples, in memory that it takes of b. It is
	// called by several goroutines at a time, for different batches.
	Collate func(b *Buffer, samples []Sample[T]) (B, error)

	Sampler  trainer.Sampler // nil: all samples in order
	Batch    int             // samples of a batch; zero: 1
	DropLast bool            // leave out the last batch of an epoch if it is shorter
	Batches  Batcher         // instead of these three

	Workers  int    // goroutines; zero: 1
	Prefetch int    // batches made or being made ahead; zero: 2 for each worker
	Seed     uint64 // of Sample.Rand
	Memory   Memory // of batches; nil: the heap
}

// A Loader makes batches of a set, an epoch at a time, ahead of the loop that uses
// them. It is for one goroutine at a time, save Close.
type Loader[T, B any] struct {
	set     Dataset[T]
	config  Config[T, B]
	batches Batcher
	buffers []*Buffer // one for each batch that there may be at a time

	at Position // of the next batch

	mu      sync.Mutex
	running bool // a loop over Epoch
	closed  bool
	cancel  context.CancelCauseFunc // of the loop that runs
	workers sync.WaitGroup
}

// NewLoader makes batches of a set. The caller closes the loader.
func NewLoader[T, B any](set Dataset[T], c Config[T, B]) (*Loader[T, B], error) {
	if c.Workers == 0 {
		c.Workers = 1
	}
	if c.Prefetch == 0 {
		c.Prefetch = 2 * c.Workers
	}
	if c.Memory == nil {
		c.Memory = heap{}
	}
	switch {
	case set == nil || c.Collate == nil:
		return nil, errors.New("data: a loader needs a set and a Collate")
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return nil, fmt.Errorf("data: %d workers: want 1 to %d", c.Workers, MaxWorkers)
	case c.Prefetch < 1 || c.Prefetch > MaxPrefetch:
		return nil, fmt.Errorf("data: %d batches ahead: want 1 to %d", c.Prefetch, MaxPrefetch)
	case c.Batches != nil && (c.Sampler != nil || c.Batch != 0 || c.DropLast):
		return nil, errors.New("data: Batches is instead of Sampler, Batch and DropLast")
	}
	l := &Loader[T, B]{set: set, config: c, batches: c.Batches}
	if l.batches == nil {
		var err error
		if l.batches, err = batcher(set.Len(), c.Sampler, c.Batch, c.DropLast); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	for range c.Prefetch + 1 {
		l.buffers = append(l.buffers, &Buffer{memory: c.Memory})
	}
	l.at = l.start(0)
	return l, nil
}

// batcher is the usual one.
func batcher(n int, s trainer.Sampler, size int, dropLast bool) (Batcher, error) {
	if s == nil {
		var err error
		if s, err = trainer.NewSequentialSampler(n); err != nil {
			return nil, err
		}
	}
	if size == 0 {
		size = 1
	}
	return trainer.NewBatchSampler(s, size, dropLast)
}

// Len is the number of batches of an epoch.
func (l *Loader[T, B]) Len() int { return l.batches.Len() }

// Epoch is what is left of the epoch at which the loader stands, batch by batch,
// and the step to the next one. A batch is valid until the loop asks for the next,
// or ends. A loop that breaks off has used the batch that it has; the next Epoch
// goes on behind it.
//
// An error is the last thing that comes, with a zero batch: that of a context that
// ended, with its cause, of a sample, of Collate, or ErrClosed. A panic of At or Collate is
// one of the loop, with a *[WorkerPanic].
func (l *Loader[T, B]) Epoch(ctx context.Context) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		if err := l.epoch(ctx, yield); err != nil {
			var none B
			yield(none, err)
		}
	}
}

// epoch is Epoch up to its error.
func (l *Loader[T, B]) epoch(ctx context.Context, yield func(B, error) bool) error {
	l.batches.SetEpoch(l.at.Epoch)
	order := slices.Collect(l.batches.Batches())
	if len(order) != l.at.Batches || l.at.Batch > len(order) {
		return fmt.Errorf("data: epoch %d has %d batches, and the loader stands at %d of %d", l.at.Epoch, len(order), l.at.Batch, l.at.Batches)
	}
	run, err := l.begin(ctx, order)
	if err != nil {
		return err
	}
	defer l.end()
	for l.at.Batch < len(order) {
		batch, err := run.next(l.at.Batch)
		if err != nil {
			return err
		}
		l.at.Batch++
		if !yield(batch, nil) {
			return nil
		}
		run.ask(l.at.Batch - 1 + len(l.buffers)) // in the memory that the loop is done with
	}
	l.at = l.start(l.at.Epoch + 1)
	return nil
}

// begin starts the workers of a loop, unless there is one or may be none.
func (l *Loader[T, B]) begin(ctx context.Context, order [][]int) (*run[T, B], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case l.running:
		return nil, errors.New("data: two loops over one loader")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := newRun(ctx, l, order)
	for range min(l.config.Workers, len(order)-l.at.Batch) {
		l.workers.Go(r.work)
	}
	l.running, l.cancel = true, cancel
	return r, nil
}

// errDone is why workers end whose loop has.
var errDone = errors.New("the loop has ended")

// end waits for the workers of a loop.
func (l *Loader[T, B]) end() {
	l.cancel(errDone)
	l.workers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
}

// Close ends the loop that runs, if one does, waits for its workers and gives the
// memory of batches back; a batch that a loop still has is no longer valid. It may
// be called by any goroutine, and again.
func (l *Loader[T, B]) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.cancel != nil {
		l.cancel(ErrClosed)
	}
	l.mu.Unlock()
	l.workers.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, b := range l.buffers {
		err = errors.Join(err, b.free())
	}
	if err != nil {
		return fmt.Errorf("data: closing: %w", err)
	}
	return nil
}
