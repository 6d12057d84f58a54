package ops

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// glance is how often the time of an operation that nothing else watches is looked
// at, which bounds how long a timer outlives a group that is no longer used.
const glance = time.Second

// A bound is the context of operations that follow one another. It ends with the
// caller's, by the group's timeout, or by cancel. A context costs more than a small
// operation does otherwise, so as long as callers give the same one and nothing has
// ended it, the one below it stays, and what transports have tied to it stays tied.
type bound struct {
	timeout time.Duration
	watch   watch

	parent context.Context // nil: none that can be compared
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin returns the context of an operation. The watch is told of it, and cancels it
// when its time is up if it does nothing else.
func (b *bound) begin(parent context.Context, first time.Duration) context.Context {
	if b.ctx == nil || b.parent == nil || b.parent != parent || b.ctx.Err() != nil {
		b.renew(parent)
	}
	if b.watch.due == nil {
		b.watch.due = b.expire
	}
	b.watch.begin(min(first, b.timeout))
	return b.ctx
}

func (b *bound) end() { b.watch.end() }

// begun is when the operation began: for whoever began it, until its end.
func (b *bound) begun() time.Time { return b.watch.since }

func (b *bound) renew(parent context.Context) {
	if b.cancel != nil {
		b.cancel(nil)
	}
	b.ctx, b.cancel = context.WithCancelCause(parent)
	if b.parent = nil; reflect.ValueOf(parent).Comparable() {
		b.parent = parent
	}
}

// expire ends the operation if it has taken too long, and says when to look again.
func (b *bound) expire(age time.Duration) time.Duration {
	if age < b.timeout {
		return min(age+glance, b.timeout)
	}
	b.cancel(late(b.timeout))
	return age + time.Hour // it is about to end
}

// late is the cause of a context whose time is up.
func late(timeout time.Duration) error {
	return fmt.Errorf("no end within %v: %w", timeout, context.DeadlineExceeded)
}
