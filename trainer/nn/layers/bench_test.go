package layers

import "testing"

// BenchmarkResNet is a step of ResNet-8 on 32 images of 28×28, on one thread.
func BenchmarkResNet(b *testing.B) {
	n := must(New(Config{}, Shape{1, 28, 28}, must(NewResNet(ResNetConfig{})), &CrossEntropy{}))
	benchmark(b, n, Batch{X: noise(1, 32*28*28), Labels: make([]int32, 32)})
}

// BenchmarkTransformer is a step of two blocks on 8 windows of 128 bytes.
func BenchmarkTransformer(b *testing.B) {
	n := must(New(Config{}, Shape{128}, must(NewTransformer(TransformerConfig{})), &CrossEntropy{}))
	benchmark(b, n, Batch{X: make([]float32, 8*128), Labels: make([]int32, 8*128)})
}

func benchmark(b *testing.B, n *Net, batch Batch) {
	for b.Loop() {
		if _, err := n.ForwardBackward(b.Context(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
}
