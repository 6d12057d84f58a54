package mesh_test

import (
	"context"
	"errors"
	"flag"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/testnet/simlink"
)

var big = flag.Bool("big", false, "test a world of 66 ranks, for a minute")

// worldsOn forms one world of n nodes on links that are all alike; done ends it.
func worldsOn(t *testing.T, n int, c simlink.Config) (worlds []*mesh.World, done func()) {
	t.Helper()
	net := simlink.New(c)
	worlds = make([]*mesh.World, n)
	var wg sync.WaitGroup
	var close []func() error
	for i := range n {
		nd, err := node.Start(t.Context(), net.Host(i).Config())
		if err != nil {
			t.Fatal(err)
		}
		m, err := mesh.Join(t.Context(), nd, mesh.Config{World: n, Bootstrap: []string{net.Host(0).Addr()}})
		if err != nil {
			t.Fatal(err)
		}
		close = append(close, func() error { return errors.Join(m.Close(), nd.Close()) })
		wg.Go(func() {
			w, err := m.World(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			worlds[w.Rank()] = w
		})
	}
	wg.Wait()
	return worlds, func() {
		for _, f := range close {
			wg.Go(func() {
				if err := f(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ranks that compute for an hour between two messages are not dead, and neither are
// those whose link is full for minutes: 32 MiB each way at half a megabyte a second.
func TestSlowIsNotDead(t *testing.T) {
	for name, c := range map[string]struct {
		simlink.Config
		idle  time.Duration
		bytes int
	}{
		"computing": {simlink.Config{Link: simlink.Link{Latency: time.Millisecond}}, time.Hour, 0},
		"full":      {simlink.Config{Link: simlink.Link{Latency: 20 * time.Millisecond}, Port: simlink.Port{Up: 5e5, Down: 5e5}}, 0, 32 << 20},
		"far":       {simlink.Config{Link: simlink.Link{Latency: 400 * time.Millisecond, Jitter: 200 * time.Millisecond}}, time.Minute, 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Seed = 1
				worlds, done := worldsOn(t, 2, c.Config)
				defer done()
				time.Sleep(c.idle)
				var wg sync.WaitGroup
				part := make([]byte, 1<<16)
				for r, w := range worlds {
					wg.Go(func() {
						parts := func(yield func([]byte, error) bool) {
							for range c.bytes >> 16 {
								if !yield(part, nil) {
									return
								}
							}
						}
						if err := w.Send(t.Context(), 1-r, 0, [40]byte{}, int64(c.bytes), parts); err != nil {
							t.Error(err)
						}
					})
					wg.Go(func() {
						err := w.Recv(t.Context(), 1-r, 0, func([40]byte, int64) error { return nil }, func([]byte) error { return nil })
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				for _, w := range worlds {
					if err := context.Cause(w.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// In a world too large for a link between every two ranks, messages and signals go
// between any two all the same, and everyone learns of an end.
func TestSparseWorld(t *testing.T) {
	if !*big {
		t.Skip("without -big")
	}
	const n = 66
	synctest.Test(t, func(t *testing.T) {
		worlds, done := worldsOn(t, n, simlink.Config{Seed: 1, Link: simlink.Link{Latency: time.Millisecond}})
		defer done()
		got := make(chan int, 1)
		worlds[41].OnSignal(3, func(from int, _ []byte) { got <- from })
		if err := worlds[0].Signal(41, 3, nil); err != nil {
			t.Fatal(err)
		}
		if from := <-got; from != 0 {
			t.Errorf("a signal from rank %d", from)
		}
		var wg sync.WaitGroup
		for _, far := range []int{3, 27, 33} { // 33 both ways at once
			wg.Go(func() {
				if _, err := pair(t.Context(), worlds[0], far); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := pair(t.Context(), worlds[far], 0); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		begin := time.Now()
		worlds[5].End(mesh.ErrGrow)
		for r, w := range worlds {
			<-w.Context().Done()
			var e *mesh.EndedError
			if err := context.Cause(w.Context()); !errors.As(err, &e) || e.Rank != 5 || !errors.Is(err, mesh.ErrGrow) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("everyone knew after %s", took)
		}
	})
}

// pair sends a message to a rank, and takes one from it.
func pair(ctx context.Context, w *mesh.World, with int) (tag [40]byte, err error) {
	if err := w.Send(ctx, with, 1, tag, 0, func(func([]byte, error) bool) {}); err != nil {
		return tag, err
	}
	accept := func(got [40]byte, _ int64) error { tag = got; return nil }
	return tag, w.Recv(ctx, with, 1, accept, func([]byte) error { return nil })
}
