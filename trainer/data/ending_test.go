package data_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/trainer/data"
)

func TestSampleErrorsAreNamed(t *testing.T) {
	torn := errors.New("torn")
	bad := data.Func[int]{N: 9, F: func(i int) (int, error) {
		if i == 5 {
			return 0, torn
		}
		return i, nil
	}}
	l := loader(t, bad, config{Batch: 2, Workers: 3})
	for range 2 { // it fails again, and does not go on behind it
		n := 0
		var last error
		for _, err := range l.Epoch(t.Context()) {
			n++
			last = err
		}
		wrong, ok := errors.AsType[*data.SampleError](last)
		if !ok || wrong.Index != 5 || !errors.Is(last, torn) || last.Error() != "data: sample 5: torn" {
			t.Errorf("%v", last)
		}
		if at := l.State(); at.Batch != 2 {
			t.Errorf("%d yields, at %+v", n, at)
		}
	}
}

// odd is a Batcher that says what it likes.
type odd struct {
	len     int
	batches [][]int
}

func (o odd) SetEpoch(int) {}

func (o odd) Len() int { return o.len }

func (o odd) Batches() iter.Seq[[]int] { return slices.Values(o.batches) }

func TestBatchers(t *testing.T) {
	l := loader(t, numbers(4), config{Batches: odd{2, [][]int{{3, 0, 3}, {}}}})
	if got := take(t, l, -1); fmt.Sprint(got) != "[[30 0 30] []]" {
		t.Error(got)
	}
	for want, o := range map[string]odd{
		"sample 4: the set has 4":  {1, [][]int{{4}}},
		"sample -1: the set has 4": {1, [][]int{{-1}}},
		"has 2 batches":            {1, [][]int{{0}, {1}}},
	} {
		l := loader(t, numbers(4), config{Batches: o})
		var last error
		for _, err := range l.Epoch(t.Context()) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), want) {
			t.Errorf("%v, want %q", last, want)
		}
	}
}

func TestCollateErrors(t *testing.T) {
	l := loader(t, numbers(4), config{Collate: func(b *data.Buffer, _ []data.Sample[int]) ([]int64, error) {
		return data.Take[int64](b, -1)
	}})
	for x, err := range l.Epoch(t.Context()) {
		if err == nil || !strings.Contains(err.Error(), "-1 elements") {
			t.Errorf("%v, %v", x, err)
		}
	}
}

func TestNewLoaderRefuses(t *testing.T) {
	for want, c := range map[string]config{
		"a Collate":        {},
		"-1 workers":       {Collate: ints, Workers: -1},
		"257 workers":      {Collate: ints, Workers: 257},
		"-1 batches ahead": {Collate: ints, Prefetch: -1},
		"is instead of":    {Collate: ints, Batches: odd{}, Batch: 1},
		"batches of -1":    {Collate: ints, Batch: -1},
	} {
		if _, err := data.NewLoader(numbers(4), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := data.NewLoader(nil, config{Collate: ints}); err == nil {
		t.Error("a loader of nothing")
	}
	if _, err := data.NewLoader(numbers(-1), config{Collate: ints}); err == nil {
		t.Error("a loader of less than nothing")
	}
}

func TestContextEndsTheLoop(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := loader(t, numbers(100), config{})
	n := 0
	for _, err := range l.Epoch(ctx) {
		if n++; n == 3 {
			cancel(enough)
		}
		if n == 4 && (!errors.Is(err, enough) || !strings.HasPrefix(err.Error(), "data: epoch 0: ")) {
			t.Error(err)
		}
	}
	if n != 4 || l.State().Batch != 3 {
		t.Errorf("%d times, at %+v", n, l.State())
	}
}

// Close ends a loop that waits for a batch, once the workers are out of At.
func TestCloseEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := data.Func[int]{N: 9, F: func(i int) (int, error) { time.Sleep(time.Hour); return i, nil }}
		l := loader(t, slow, config{Batch: 3, Workers: 2})
		ended := make(chan error)
		go func() {
			var last error
			for _, err := range l.Epoch(t.Context()) {
				last = err
			}
			ended <- last
		}()
		synctest.Wait()
		begin := time.Now()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("took %v: one call of At is an hour", took)
		}
		if err := <-ended; err != data.ErrClosed {
			t.Error(err)
		}
		for _, err := range l.Epoch(t.Context()) {
			if err != data.ErrClosed {
				t.Error(err)
			}
		}
	})
}

func TestOneLoopAtATime(t *testing.T) {
	l := loader(t, numbers(9), config{})
	for range l.Epoch(t.Context()) {
		for _, err := range l.Epoch(t.Context()) {
			if err == nil || !strings.Contains(err.Error(), "two loops") {
				t.Error(err)
			}
		}
		break
	}
}

// A panic on a worker is one of the loop, in its batch's turn, and the workers have ended.
// One that leaves by Goexit is an error.
func TestPanicOfAWorker(t *testing.T) {
	torn := errors.New("torn")
	for _, workers := range []int{1, 3} {
		fail := func() { panic(torn) }
		l := loader(t, data.Func[int]{N: 9, F: func(i int) (int, error) {
			if i == 5 {
				fail()
			}
			return i, nil
		}}, config{Batch: 2, Workers: workers})
		n := 0
		func() {
			defer func() {
				p, ok := recover().(*data.WorkerPanic)
				if !ok || !errors.Is(p, torn) || !strings.Contains(p.Error(), "panic of a worker: torn\n") || !strings.Contains(string(p.Stack), "TestPanicOfAWorker") {
					t.Errorf("panic with %v", p)
				}
			}()
			for range l.Epoch(t.Context()) {
				n++
			}
		}()
		if at := l.State(); n != 2 || at.Batch != 2 {
			t.Errorf("after %d batches, at %+v", n, at)
		}
		fail = runtime.Goexit
		for _, err := range l.Epoch(t.Context()) {
			if err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
				t.Error(err)
			}
		}
		fail = func() {}
		if got := take(t, l, -1); len(got) != 3 {
			t.Errorf("mended, it gives %v", got)
		}
	}
	if p := (&data.WorkerPanic{Value: 5}); p.Unwrap() != nil {
		t.Error("5 is an error")
	}
}

// A panic in the loop's body leaves no goroutine, and the loader of use.
func TestPanicInTheLoop(t *testing.T) {
	l := loader(t, numbers(9), config{Batch: 5})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		for range l.Epoch(t.Context()) {
			panic("out of range")
		}
	}()
	if got := take(t, l, -1); fmt.Sprint(got) != "[[50 60 70 80]]" {
		t.Error(got)
	}
}
