package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

func missing(err error, want ...int) error {
	var m *ops.MissingError
	if !errors.As(err, &m) || !slices.Equal(m.Ranks, want) || m.Call.Kind != ops.KindMonitoredBarrier {
		return fmt.Errorf("want ranks %v missing, got %w", want, err)
	}
	return nil
}

func TestMonitoredBarrierOfAll(t *testing.T) {
	for n := 1; n <= 5; n++ {
		synctest.Test(t, func(t *testing.T) {
			check(t, world(n, ops.Config{}, func(g *ops.Group) error {
				for range 3 {
					time.Sleep(time.Duration(g.Rank()) * time.Second)
					start := time.Now()
					if err := g.MonitoredBarrier(ctx, time.Minute, true).Wait(); err != nil {
						return err
					}
					if d := time.Since(start); d != time.Duration(n-1-g.Rank())*time.Second {
						return fmt.Errorf("waited %v", d)
					}
				}
				return g.Barrier(ctx).Wait()
			}))
		})
	}
}

// Whoever is missing, rank 0 too, every rank that came learns who it is within a
// second of the timeout; the first of them to lose patience speaks for all.
func TestMonitoredBarrierNamesTheMissing(t *testing.T) {
	for _, absent := range [][]int{{0}, {2}, {0, 1, 5}, {1, 2, 3, 4, 5}} {
		for _, all := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				named := absent
				if !all {
					named = absent[:1]
				}
				check(t, world(6, ops.Config{}, func(g *ops.Group) error {
					if slices.Contains(absent, g.Rank()) {
						time.Sleep(time.Hour)
					}
					start := time.Now()
					err := missing(g.MonitoredBarrier(ctx, 10*time.Second+time.Duration(g.Rank())*time.Minute, all).Wait(), named...)
					first := 0
					for slices.Contains(absent, first) {
						first++
					}
					limit := 11*time.Second + time.Duration(first)*time.Minute
					if d := time.Since(start); d > limit || !slices.Contains(absent, g.Rank()) && d < limit-time.Second {
						return fmt.Errorf("after %v, want %v", d, limit)
					}
					// Afterwards the group refuses work with that error, wherever it is.
					return errors.Join(err, missing(g.AllReduce(ctx, f32(1), tensor.Sum).Wait(), named...))
				}))
			})
		}
	}
}

// A rank that has issued the barrier but is held up before it has not come.
func TestMonitoredBarrierBehindAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := schedule.Schedule{Name: "2 to 1", Ranks: 3, Chunks: 1, Rounds: []schedule.Round{{{From: 2, To: 1, N: 1}}}}
		check(t, world(3, ops.Config{}, func(g *ops.Group) error {
			if g.Rank() == 2 {
				time.Sleep(time.Minute)
			}
			before := g.Run(ctx, s, f32(3), tensor.Op{})
			w := g.MonitoredBarrier(ctx, time.Second, true)
			return errors.Join(before.Wait(), missing(w.Wait(), 1, 2))
		}))
	})
}

// In a group the missing are named by their ranks in the world; others go on.
func TestMonitoredBarrierInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, world(5, ops.Config{}, func(g *ops.Group) error {
			some, err := g.Split(ctx, []int{1, 3, 4})
			if err != nil {
				return err
			}
			if some.Rank() >= 0 && g.Rank() != 3 {
				err = missing(some.Relative().MonitoredBarrier(ctx, time.Second, true).Wait(), 3)
			}
			return errors.Join(err, g.Barrier(ctx).Wait())
		}))
	})
}

// It is found out as any call is when others issue another, or the context ends.
func TestMonitoredBarrierIsACollective(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, world(3, ops.Config{}, func(g *ops.Group) error {
			w := g.MonitoredBarrier(ctx, time.Minute, g.Rank() == 1)
			var m *ops.MismatchError
			if err := w.Wait(); !errors.As(err, &m) || m.Ours.String() == m.Theirs.String() {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}))
	})
	synctest.Test(t, func(t *testing.T) {
		check(t, world(2, ops.Config{}, func(g *ops.Group) error {
			if g.Rank() == 1 {
				return nil
			}
			c, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := g.MonitoredBarrier(c, time.Minute, true).Wait(); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}))
	})
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		if err := g.MonitoredBarrier(ctx, 0, true).Wait(); err == nil {
			return errors.New("a barrier without time")
		}
		return g.Barrier(ctx).Wait()
	}))
}
