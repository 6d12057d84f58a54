package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

type calls map[string]func(g *ops.Group) *ops.Work

func f32(n int) tensor.Tensor { return tensor.New(tensor.Float32, n) }

// Every two of these are different calls.
var differing = calls{
	"all_reduce sum": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f32(8), tensor.Sum) },
	"all_reduce max": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f32(8), tensor.Max) },
	"all_reduce int": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, tensor.New(tensor.Int32, 8), tensor.Sum) },
	"all_reduce 9":   func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f32(9), tensor.Sum) },
	"all_reduce big": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f32(1<<17), tensor.Sum) },
	"broadcast 0":    func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, f32(8), 0) },
	"broadcast 1":    func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, f32(8), 1) },
	"broadcast big":  func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, f32(1<<17), 0) },
	"reduce 0":       func(g *ops.Group) *ops.Work { return g.Reduce(ctx, f32(8), tensor.Sum, 0) },
	"reduce 2":       func(g *ops.Group) *ops.Work { return g.Reduce(ctx, f32(8), tensor.Sum, 2) },
	"all_gather":     func(g *ops.Group) *ops.Work { return g.AllGather(ctx, f32(8*g.Size()), f32(8)) },
	"reduce_scatter": func(g *ops.Group) *ops.Work { return g.ReduceScatter(ctx, f32(8), f32(8*g.Size()), tensor.Sum) },
	"barrier":        func(g *ops.Group) *ops.Work { return g.Barrier(ctx) },
}

// One rank calls something else. Every rank gets a MismatchError that names a
// rank which differs from it and both calls, within a second. A rank whose own
// part was done may have returned before, and gets it with one of its next.
func TestMismatch(t *testing.T) {
	const n, odd = 3, 1
	for theirs, most := range differing {
		for ours, one := range differing {
			if theirs == ours {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				errs := world(n, ops.Config{}, func(g *ops.Group) error {
					call := most
					if g.Rank() == odd {
						call = one
					}
					err := call(g).Wait()
					for i := 0; err == nil && i < n; i++ {
						err = g.Barrier(ctx).Wait()
					}
					return err
				})
				for r, err := range errs {
					var m *ops.MismatchError
					switch {
					case !errors.As(err, &m):
						t.Errorf("%s | %s: rank %d: %v", theirs, ours, r, err)
					case (m.Rank == odd) == (r == odd), m.Ours == m.Theirs:
						t.Errorf("%s | %s: rank %d is told: %v", theirs, ours, r, err)
					}
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("%s | %s: took %v", theirs, ours, d)
				}
			})
		}
	}
}

func TestMismatchReads(t *testing.T) {
	errs := world(2, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() == 0 {
			return g.AllReduce(ctx, f32(1024), tensor.Sum).Wait()
		}
		return g.AllReduce(ctx, f32(512), tensor.Max).Wait()
	})
	for r, says := range []string{
		"ops: rank 1 is in all_reduce #0 (float32 × 512, max), we are in all_reduce #0 (float32 × 1024, sum)",
		"ops: rank 0 is in all_reduce #0 (float32 × 1024, sum), we are in all_reduce #0 (float32 × 512, max)",
	} {
		if !strings.HasPrefix(fmt.Sprint(errs[r]), says) {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
}

// Afterwards the group refuses work with that error; another goes on.
func TestOtherGroupsGoOn(t *testing.T) {
	worlds := memnet.New(3)
	check(t, on(worlds, ops.Config{}, func(g *ops.Group) error {
		count := 4
		if g.Rank() == 2 {
			count = 5
		}
		first := g.AllReduce(ctx, f32(count), tensor.Sum).Wait()
		second := g.Barrier(ctx).Wait()
		var m *ops.MismatchError
		if !errors.As(first, &m) || !errors.As(second, &m) || first.Error() != second.Error() {
			return fmt.Errorf("first %v, then %v", first, second)
		}
		return nil
	}))
	check(t, on(worlds, ops.Config{ID: 1}, func(g *ops.Group) error {
		return g.AllReduce(ctx, f32(4), tensor.Sum).Wait()
	}))
}

// A rank that is late is waited for, for as long as it takes.
func TestLateIsNoMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, world(3, ops.Config{}, func(g *ops.Group) error {
			for i := range 3 {
				if g.Rank() == i {
					time.Sleep(10 * time.Minute)
				}
				if err := g.AllReduce(ctx, f32(8), tensor.Sum).Wait(); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// A rank that gives up takes the others along, by name.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("had enough")
		errs := world(3, ops.Config{}, func(g *ops.Group) error {
			switch g.Rank() {
			case 0: // never comes
				time.Sleep(time.Hour)
				return g.AllReduce(ctx, f32(8), tensor.Sum).Wait()
			case 1:
				c, cancel := context.WithCancelCause(ctx)
				w := g.AllReduce(c, f32(8), tensor.Sum)
				time.Sleep(time.Second)
				cancel(gone)
				return w.Wait()
			}
			return g.AllReduce(ctx, f32(8), tensor.Sum).Wait()
		})
		if !errors.Is(errs[1], gone) {
			t.Errorf("rank 1: %v", errs[1])
		}
		for _, r := range []int{0, 2} {
			var a *ops.AbortedError
			if !errors.As(errs[r], &a) || a.Rank != 1 || !strings.Contains(a.Reason, "had enough") {
				t.Errorf("rank %d: %v", r, errs[r])
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		errs := world(2, ops.Config{Timeout: time.Minute}, func(g *ops.Group) error {
			if g.Rank() == 1 {
				return g.Recv(ctx, f32(1), 0, 0)
			}
			return g.Barrier(ctx).Wait()
		})
		for r, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

// The end of the world is every operation's error, and its cause is found in it.
func TestWorldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds := memnet.New(4)
		errs := on(worlds, ops.Config{}, func(g *ops.Group) error {
			if g.Rank() == 3 {
				time.Sleep(time.Second)
				worlds[3].Kill()
			}
			w := g.AllReduce(ctx, f32(1000), tensor.Sum)
			p := g.Irecv(ctx, f32(1), (g.Rank()+1)%4, 0)
			if err := p.Wait(); !errors.Is(err, memnet.ErrKilled) {
				return err
			}
			return w.Wait()
		})
		for r, err := range errs {
			if !errors.Is(err, memnet.ErrKilled) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// A world that ends at any moment of a large collective leaves nobody waiting.
func TestWorldEndsAnywhere(t *testing.T) {
	for _, algorithm := range []string{"ring", "direct", "tree"} {
		for step := range 12 {
			synctest.Test(t, func(t *testing.T) {
				worlds := memnet.New(4)
				errs := on(worlds, ops.Config{Algorithm: algorithm, Lanes: 2}, func(g *ops.Group) error {
					for i := range 8 {
						if g.Rank() == step%4 && i == step/2 {
							worlds[g.Rank()].Kill()
						}
						if err := g.AllReduce(ctx, f32(50_000), tensor.Sum).Wait(); err != nil {
							return err
						}
					}
					return nil
				})
				for r, err := range errs {
					if !errors.Is(err, memnet.ErrKilled) {
						t.Errorf("%s, step %d, rank %d: %v", algorithm, step, r, err)
					}
				}
			})
		}
	}
}
