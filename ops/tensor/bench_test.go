package tensor_test

import (
	"fmt"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// BenchmarkReduceAt reports the bytes of a message folded per second: hot in
// the cache, as a segment is that was just received, aligned as Of's elements
// are and unaligned as a receive buffer is.
func BenchmarkReduceAt(b *testing.B) {
	const n = 64 << 10
	dst, src := tensor.New(tensor.Uint8, n), tensor.New(tensor.Uint8, n+1)
	p, _ := src.View(0, n+1)
	for _, t := range tensortest.DTypes() {
		m := tensor.In(dst.Memory(), t, n/t.Size())
		for _, op := range tensortest.Ops(t) {
			for shift := range 2 {
				b.Run(fmt.Sprintf("%v/%v/shift=%d", t, op, shift), func(b *testing.B) {
					b.SetBytes(n)
					b.ReportAllocs()
					for b.Loop() {
						if err := m.ReduceAt(p[shift:shift+n], 0, op); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkReduceAtSmall is what a message of eight elements costs.
func BenchmarkReduceAtSmall(b *testing.B) {
	m := tensor.New(tensor.Float32, 8)
	p := make([]byte, 32)
	for b.Loop() {
		if err := m.ReduceAt(p, 0, tensor.Sum); err != nil {
			b.Fatal(err)
		}
	}
}
