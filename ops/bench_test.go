package ops_test

import (
	"fmt"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// The executor's own cost: links that are queues in memory.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, size := range []int{2, 1 << 12, 1 << 18, 1 << 22} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, 4*size), func(b *testing.B) {
				b.SetBytes(int64(4 * size))
				loop(b, n, func(g *ops.Group) func() error {
					x := tensor.New(tensor.Float32, size)
					return func() error { return g.AllReduce(ctx, x, tensor.Sum).Wait() }
				})
			})
		}
	}
}

// What every operation costs, however small: one of two ranks that send and receive in
// turn, and a barrier.
func BenchmarkSmall(b *testing.B) {
	b.Run("send-recv", func(b *testing.B) {
		loop(b, 2, func(g *ops.Group) func() error {
			x, me := tensor.New(tensor.Float32, 2), g.Rank()
			send := func() error { return g.Send(ctx, x, 1-me, 0) }
			recv := func() error { return g.Recv(ctx, x, 1-me, 0) }
			first, second := send, recv
			if me == 1 {
				first, second = recv, send
			}
			return func() error {
				if err := first(); err != nil {
					return err
				}
				return second()
			}
		})
	})
	b.Run("barrier", func(b *testing.B) {
		loop(b, 2, func(g *ops.Group) func() error { return func() error { return g.Barrier(ctx).Wait() } })
	})
	b.Run("issued-ahead", func(b *testing.B) { // and done by a goroutine of the group
		loop(b, 2, func(g *ops.Group) func() error {
			x := tensor.New(tensor.Float32, 2)
			works := make([]*ops.Work, 16)
			return func() error {
				for i := range works {
					works[i] = g.AllReduce(ctx, x, tensor.Max)
				}
				for _, w := range works {
					if err := w.Wait(); err != nil {
						return err
					}
				}
				return nil
			}
		})
	})
}

// loop runs what prepare returns b.N times on every rank of a world of n.
func loop(b *testing.B, n int, prepare func(g *ops.Group) func() error) {
	b.Helper()
	b.ReportAllocs()
	for _, err := range world(n, ops.Config{}, func(g *ops.Group) error {
		step := prepare(g)
		for range 3 { // lanes, plans and buffers are made once
			if err := step(); err != nil {
				return err
			}
		}
		if g.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			b.Fatal(err)
		}
	}
}
