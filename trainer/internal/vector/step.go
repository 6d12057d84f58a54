package vector

// Lanes is how many elements a kernel takes at a time.
const Lanes = 8

// A Kernel is an optimiser's arithmetic, that of package trainer's type of its name.
type Kernel uint8

// None moves nothing.
const (
	None Kernel = iota
	SGD
	Adadelta
	Adagrad
	Adam // and AdamW
	RMSprop
	Lion
	LAMB
	lambLengths // which is not for Move
	kernels
)

// A Step is what all elements of a parameter share when an optimiser takes its step. Numbers
// that an optimiser does not have are 0; the betas go by Adam's names. Each is rounded once,
// to the parameter's element type.
type Step struct {
	Kernel        Kernel
	LR            float64
	Sign          float64 // of the gradient: 1, or -1 to climb
	Decay         float64 // this much of the element is added to its gradient, unless it is 0; Lion, LAMB: to its move
	Beta1, Fresh1 float64 // what a mean of gradients keeps and takes in; SGD, RMSprop: the momentum; Lion: the move's
	Beta2, Fresh2 float64 // the same of a mean of squares: Adadelta's rho, RMSprop's alpha; Lion: the mean's
	Eps           float64
	Root          float64 // Adam, LAMB: what the root of the mean of squares is divided by
	Scale         float64 // Adam: what the element is multiplied by; LAMB: what the mean is divided by
	Nesterov      bool    // SGD
}

// numbers are a Step as the kernels read it.
type numbers struct {
	lr, sign, decay, beta1, fresh1, beta2, fresh2, eps, root, scale float32

	nesterov bool
}

// Move takes the step for the first elements of x, as many as it returns: a multiple of Lanes,
// and 0 where there is no kernel. grad is x's gradient, and memory what the optimiser remembers
// of each element, by slot: SGD the momentum; Adadelta the means of squares of gradients and of
// moves; Adagrad the sum of squares; Adam the mean, the mean of squares, and the greatest of
// those so far, nil for no AMSGrad; RMSprop the mean of squares, the mean, nil for one that is
// not centered, and the momentum. At a momentum of 0 there need be none. Lion remembers the
// mean; LAMB the mean and the mean of squares, as Lengths has left them. Nothing is shorter than
// x, and nothing overlaps.
func (s Step) Move(x, grad []float32, memory [3][]float32) int {
	if s.Kernel == None || s.Kernel > LAMB {
		return 0
	}
	return s.run(s.Kernel, x, grad, memory, nil)
}

// Lengths are sums of squares, one for each element of a vector.
type Lengths struct {
	X, Move [Lanes]float64
}

// Lengths is what LAMB does before Move, with the same x, grad and memory: it takes the
// gradients into memory, and adds to l the squares of x and of what the moves will be.
func (s Step) Lengths(l *Lengths, x, grad []float32, memory [3][]float32) int {
	if s.Kernel != LAMB {
		return 0
	}
	return s.run(lambLengths, x, grad, memory, l)
}

func (s Step) run(k Kernel, x, grad []float32, memory [3][]float32, l *Lengths) int {
	n := len(x) / Lanes * Lanes
	if !available || n == 0 {
		return 0
	}
	by := numbers{
		lr: float32(s.LR), sign: float32(s.Sign), decay: float32(s.Decay),
		beta1: float32(s.Beta1), fresh1: float32(s.Fresh1), beta2: float32(s.Beta2), fresh2: float32(s.Fresh2),
		eps: float32(s.Eps), root: float32(s.Root), scale: float32(s.Scale), nesterov: s.Nesterov,
	}
	observe(grad[:n], x[:n], memory[0], memory[1], memory[2])
	move(k, n, &by, first(x, n), first(grad, n), first(memory[0], n), first(memory[1], n), first(memory[2], n), l)
	return n
}

// first points to the first of n elements, or is nil for none. The kernels know no lengths:
// what is too short stops here, and what is missing there, as any nil pointer would.
func first(x []float32, n int) *float32 {
	if x == nil {
		return nil
	}
	_ = x[n-1]
	return &x[0]
}
