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
		for _, size := range []int{2, 1 << 18, 1 << 22} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, 4*size), func(b *testing.B) {
				b.SetBytes(int64(4 * size))
				b.ReportAllocs()
				for _, err := range world(n, ops.Config{}, func(g *ops.Group) error {
					x := tensor.New(tensor.Float32, size)
					for range b.N {
						if err := g.AllReduce(ctx, x, tensor.Sum).Wait(); err != nil {
							return err
						}
					}
					return nil
				}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
