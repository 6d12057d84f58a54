package data

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
)

// A Sample is one of a batch.
type Sample[T any] struct {
	Index int // in the set
	Value T

	seed  uint64
	epoch int
}

// Rand is a new source of random numbers for this sample in this epoch: the same
// whichever worker asks, and however often. In another epoch it is another.
func (s Sample[T]) Rand() *rand.Rand {
	// The epoch goes through a generator of its own, lest epoch 1 of seed 1 be epoch
	// 0 of seed 2.
	seed := rand.NewPCG(s.seed, uint64(s.epoch)).Uint64()
	return rand.New(rand.NewPCG(seed, uint64(s.Index)))
}

// A SampleError is about one sample of a set.
type SampleError struct {
	Index int
	Err   error
}

func (e *SampleError) Error() string { return fmt.Sprintf("data: sample %d: %v", e.Index, e.Err) }

// Unwrap gives the reason, without the index.
func (e *SampleError) Unwrap() error { return e.Err }

// A WorkerPanic is what a loop over a Loader panics with when At or Collate has, on the
// goroutine of a worker: there, nobody could recover from it.
type WorkerPanic struct {
	Value any    // of the panic
	Stack []byte // of the worker
}

func (p *WorkerPanic) Error() string {
	return fmt.Sprintf("data: panic of a worker: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap gives the value if it is an error.
func (p *WorkerPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// errGone is a batch's error until there is a better one.
var errGone = errors.New("data: At or Collate has ended its goroutine")

// A run is what a loop and its workers share. Batch k of the epoch is made in slot
// k modulo their number, and only asked for when the slot's last batch has been
// used: so a slot is always one goroutine's.
type run[T, B any] struct {
	ctx    context.Context
	loader *Loader[T, B]
	order  [][]int // the epoch's batches
	epoch  int
	jobs   chan int // batches to make
	slots  []slot[B]
}

// A slot is where a batch is made.
type slot[B any] struct {
	buffer *Buffer
	made   chan made[B] // holds one, so that no worker ever waits to hand over
}

type made[B any] struct {
	batch    B
	err      error
	panicked *WorkerPanic
}

// newRun asks for as many batches as there is memory for.
func newRun[T, B any](ctx context.Context, l *Loader[T, B], order [][]int) *run[T, B] {
	r := &run[T, B]{ctx: ctx, loader: l, order: order, epoch: l.at.Epoch, jobs: make(chan int, len(l.buffers))}
	for _, b := range l.buffers {
		r.slots = append(r.slots, slot[B]{b, make(chan made[B], 1)})
	}
	for k := range l.buffers {
		r.ask(l.at.Batch + k)
	}
	return r
}

func (r *run[T, B]) slot(k int) *slot[B] { return &r.slots[k%len(r.slots)] }

// ask has batch k made, if there is one. There is room among the jobs for as many
// as there are slots.
func (r *run[T, B]) ask(k int) {
	if k < len(r.order) {
		r.jobs <- k
	}
}

// next is batch k, when it is made.
func (r *run[T, B]) next(k int) (B, error) {
	var none B
	if r.ctx.Err() != nil { // of two that are ready, select would take either
		return none, r.ended()
	}
	select {
	case <-r.ctx.Done():
		return none, r.ended()
	case m := <-r.slot(k).made:
		if m.panicked != nil {
			panic(m.panicked)
		}
		return m.batch, m.err
	}
}

// ended is why the loop may not go on.
func (r *run[T, B]) ended() error {
	err := context.Cause(r.ctx)
	if err == ErrClosed {
		return err
	}
	return fmt.Errorf("data: epoch %d: %w", r.epoch, err)
}

// work makes batches until the run's context ends.
func (r *run[T, B]) work() {
	var samples []Sample[T]
	for {
		select {
		case <-r.ctx.Done():
			return
		case k := <-r.jobs:
			r.do(r.slot(k), r.order[k], &samples)
		}
	}
}

// do makes a batch and hands it over, or what has become of it.
func (r *run[T, B]) do(s *slot[B], indices []int, samples *[]Sample[T]) {
	m := made[B]{err: errGone}
	defer func() {
		if p := recover(); p != nil {
			m.panicked = &WorkerPanic{p, debug.Stack()}
		}
		s.made <- m
	}()
	m.batch, m.err = r.make(s.buffer, indices, samples)
}

// make makes one batch. samples is the worker's, to be used again.
func (r *run[T, B]) make(b *Buffer, indices []int, samples *[]Sample[T]) (B, error) {
	var none B
	set := r.loader.set
	*samples = (*samples)[:0]
	for _, i := range indices {
		if r.ctx.Err() != nil { // nobody wants the rest
			return none, r.ended()
		}
		if i < 0 || i >= set.Len() {
			return none, &SampleError{i, fmt.Errorf("the set has %d", set.Len())}
		}
		x, err := set.At(i)
		if err != nil {
			return none, &SampleError{i, err}
		}
		*samples = append(*samples, Sample[T]{Index: i, Value: x, seed: r.loader.config.Seed, epoch: r.epoch})
	}
	b.taken = 0
	batch, err := r.loader.config.Collate(b, *samples)
	clear(*samples) // which keep memory alive
	return batch, err
}
