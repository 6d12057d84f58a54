package nn

// randomBatch is n samples of noise, always the same.
func randomBatch(n int) Batch {
	s := stream(5)
	b := Batch{X: make([]float32, n*pixels), Y: make([]uint8, n)}
	for i := range b.X {
		b.X[i] = s.uniform(1)
	}
	for i := range b.Y {
		b.Y[i] = uint8(s.next() % Classes)
	}
	return b
}
