package nn

import (
	"fmt"
	"testing"
)

// A step of the ConvNet: 469 of batch 128 are an epoch.
func BenchmarkConvNetStep(b *testing.B) { benchmarkStep(b, NewConvNet, 32, 128) }

func BenchmarkTutorialStep(b *testing.B) { benchmarkStep(b, NewTutorial, 128) }

// A rank's share of a batch of 128, with four.
func BenchmarkMLPStep(b *testing.B) { benchmarkStep(b, classic, 32) }

func benchmarkStep(b *testing.B, make func(Config) (*Net, error), sizes ...int) {
	for _, size := range sizes {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("batch=%d/threads=%d", size, threads), func(b *testing.B) {
				n, err := make(Config{Threads: threads})
				if err != nil {
					b.Fatal(err)
				}
				batch := noise(size, Side*Side, Classes)
				for b.Loop() {
					if _, err := n.ForwardBackward(b.Context(), batch, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
