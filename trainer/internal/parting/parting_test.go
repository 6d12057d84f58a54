package parting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

type world struct{ ctx context.Context }

func (w world) Context() context.Context { return w.ctx }

type telling struct {
	world
	done chan struct{}
}

func (w telling) Done() <-chan struct{} { return w.done }

// Only what has ended and says when it is done is waited for, and not for ever.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := t.Context()
		over, cancel := context.WithCancel(on)
		cancel()
		told := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(told) })
		for _, c := range []struct {
			name string
			w    interface{ Context() context.Context }
			want time.Duration
		}{
			{"is none", nil, 0},
			{"goes on", telling{world{on}, nil}, 0},
			{"does not say", world{over}, 0},
			{"says", telling{world{over}, told}, time.Second},
			{"never is", telling{world{over}, nil}, Patience},
		} {
			begin := time.Now()
			Wait(c.w)
			if took := time.Since(begin); took != c.want {
				t.Errorf("one that %s: %v, want %v", c.name, took, c.want)
			}
		}
	})
}
