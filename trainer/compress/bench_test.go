package compress

import (
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// BenchmarkHook is a step's averaging of a bucket by four ranks of one process, over links in
// memory: what codecs and feedback take of the processors, and what goes around them. Each step
// has the same gradients, put back before it.
func BenchmarkHook(b *testing.B) {
	const ranks, count = 4, 2_900_000
	for _, name := range []string{"float16", "int8", "int4", "onebit"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * count)
			errs := each(memnet.New(ranks), func(g *ops.Group) error {
				hook, err := New(name, nil)
				if err != nil {
					return err
				}
				grads := singles(normals(count, uint64(g.Rank()), 1))
				x := make([]float32, count)
				p := &trainer.Param{Name: "w", Value: tensor.Of(x)}
				bucket := trainer.Bucket{Data: tensor.Of(x), Params: []*trainer.Param{p}, Parts: []tensor.Tensor{tensor.Of(x)}}
				if err := g.Barrier(b.Context()).Wait(); err != nil {
					return err
				}
				if g.Rank() == 0 {
					b.ResetTimer()
				}
				for range b.N {
					copy(x, grads)
					if err := hook.Reduce(b.Context(), g, bucket).Wait(); err != nil {
						return err
					}
				}
				return nil
			})
			for r, err := range errs {
				if err != nil {
					b.Fatalf("rank %d: %v", r, err)
				}
			}
		})
	}
}
