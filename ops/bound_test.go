package ops

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A watch tells of an operation at the ages that it is asked for, and no more once
// that has ended, though the timer goes on for the next one.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		w := watch{due: func(age time.Duration) time.Duration {
			told = append(told, age)
			return 2 * age
		}}
		w.begin(10 * time.Millisecond)
		time.Sleep(45 * time.Millisecond)
		w.end()
		for range 1000 { // none of them takes long
			w.begin(10 * time.Millisecond)
			time.Sleep(time.Millisecond)
			w.end()
		}
		if want := []time.Duration{10e6, 20e6, 40e6}; !slices.Equal(told, want) {
			t.Errorf("told at %v, want %v", told, want)
		}
		told = nil
		w.begin(time.Hour)
		time.Sleep(time.Second)
		w.end()
		w.begin(time.Millisecond) // sooner than the timer is set for
		time.Sleep(time.Second / 2)
		w.end()
		if len(told) == 0 || told[0] != time.Millisecond {
			t.Errorf("told at %v, want 1ms", told)
		}
	})
}

// The context stays while callers give the same one and nothing ends it.
func TestBoundStays(t *testing.T) {
	b := bound{timeout: time.Hour}
	parent, cancel := context.WithCancelCause(context.Background())
	step := func(parent context.Context) context.Context {
		defer b.end()
		return b.begin(parent, time.Hour)
	}
	first := step(parent)
	if step(parent) != first || first.Err() != nil {
		t.Error("another context for the same caller's")
	}
	other := step(context.Background())
	if other == first || first.Err() == nil {
		t.Error("the context of one caller serves another")
	}
	b.cancel(errors.New("had enough"))
	if again := step(context.Background()); again == other || again.Err() != nil {
		t.Error("an ended context serves the next operation")
	}
	last, why := step(parent), errors.New("why")
	cancel(why)
	if context.Cause(last) != why {
		t.Errorf("cause %v", context.Cause(last))
	}
	type odd struct { // cannot be compared
		context.Context
		_ []int
	}
	if a := step(odd{Context: context.Background()}); a == step(odd{Context: context.Background()}) {
		t.Error("contexts that cannot be compared are taken for the same")
	}
}

// The timeout counts from the begin of each operation, not of the first.
func TestBoundTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bound{timeout: 10 * time.Second}
		for range 5 {
			ctx := b.begin(t.Context(), glance)
			time.Sleep(9 * time.Second)
			if b.end(); ctx.Err() != nil {
				t.Fatalf("ended by %v", context.Cause(ctx))
			}
		}
		start := time.Now()
		ctx := b.begin(t.Context(), glance)
		<-ctx.Done()
		if d := time.Since(start); d != 10*time.Second || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("ended after %v by %v", d, context.Cause(ctx))
		}
		b.end()
	})
}
