package vector

// Lanes is how many elements a kernel takes at a time.
const Lanes = 8

// Adadelta are the settings of a step, the names those of trainer.AdadeltaConfig. The kernel
// reads them by their order.
type Adadelta struct {
	LR, Rho float32
	Fresh   float32 // 1-Rho
	Eps     float32
	Decay   float32 // at least 0; 0 for none
	Sign    float32 // of the gradient: 1, or -1 to climb
}

// Move takes Adadelta's step on the first elements of x, as many as it returns: a multiple of
// Lanes, and 0 where there is no kernel. grad is x's gradient, sq and acc the averages of its
// squares and of the moves' squares. None is shorter than x, and none overlaps another.
func (a *Adadelta) Move(x, grad, sq, acc []float32) int {
	n := len(x) / Lanes * Lanes
	if !available || n == 0 {
		return 0
	}
	// The kernel knows no lengths: what is too short stops here.
	_, _, _ = grad[n-1], sq[n-1], acc[n-1]
	adadelta(n, &x[0], &grad[0], &sq[0], &acc[0], a)
	return n
}
