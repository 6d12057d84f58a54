package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// LAMBConfig has the settings of LAMB. A zero LR, Beta1, Beta2, Eps or
// WeightDecay stands for its default, which is the paper's for BERT save for the
// rate, which it fits to the batch. Who must have one writes Zero.
type LAMBConfig struct {
	LR          float64 // learning rate; zero: 0.001
	Beta1       float64 // what the mean gradient keeps in a step; zero: 0.9
	Beta2       float64 // what the mean squared gradient keeps; zero: 0.999
	Eps         float64 // keeps the denominator above 0; zero: 1e-6
	WeightDecay float64 // this much of the parameter is added to its move; zero: 0.01
	Maximize    bool    // climb rather than descend
}

// LAMB is Adam for large batches: every parameter moves by a share of its own
// length, whatever its gradient's (You et al. 2020, "Large batch optimization for
// deep learning: Training BERT in 76 minutes", arXiv 1904.00962, algorithm 2,
// with φ(z) = z), at step t:
//
//	g = ±gradient
//	m = Beta1·m + (1-Beta1)·g
//	v = Beta2·v + (1-Beta2)·g²
//	r = m/(1-Beta1ᵗ) / (√(v/(1-Beta2ᵗ)) + Eps) + WeightDecay·p
//	p -= LR · ‖p‖/‖r‖ · r              1 for ‖p‖/‖r‖ where either is 0
//
// The norms are of a whole parameter, the paper's layer, so a part of one would
// not move as the whole does. Authors often clip the gradients to a norm of 1
// first, which is ClipGradNorm's work.
//
// That is what timm's Lamb does with always_adapt, and as its kernels read NVIDIA's
// FusedLAMB with use_nvlamb. By default these two clip as well, and give no ‖p‖/‖r‖ to
// parameters without weight decay, which is not in the paper: an AdamW with LAMB's Eps
// and WeightDecay: Zero moves those as they do. The Lamb of torch_optimizer takes m and v
// as they are, without the paper's division, and no ‖p‖ above 10.
type LAMB struct{ groups }

// NewLAMB checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewLAMB(params []*Param, c LAMBConfig) (*LAMB, error) {
	l := &LAMB{groups{name: "LAMB"}}
	if err := l.AddParams(params, c); err != nil {
		return nil, err
	}
	return l, nil
}

// AddParams adds a group of parameters that has other settings.
func (l *LAMB) AddParams(params []*Param, c LAMBConfig) error {
	c.LR = OrDefault(c.LR, 1e-3)
	c.Beta1 = OrDefault(c.Beta1, 0.9)
	c.Beta2 = OrDefault(c.Beta2, 0.999)
	c.Eps = OrDefault(c.Eps, 1e-6)
	c.WeightDecay = OrDefault(c.WeightDecay, 0.01)
	momentum := setting{"a beta1", c.Beta1, belowOne}
	if err := checkSettings("LAMB",
		setting{"a learning rate", c.LR, math.Inf(1)},
		momentum,
		setting{"a beta2", c.Beta2, belowOne},
		setting{"an epsilon", c.Eps, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return err
	}
	return l.add(group{
		params:   params,
		slots:    []string{"exp_avg", "exp_avg_sq"},
		momentum: momentum,
		step:     c.step,
		single:   lambMany,
		double:   lambMove[float64],
	}, c.LR)
}

func (c LAMBConfig) step(m motion) vector.Step {
	return vector.Step{Kernel: vector.LAMB, LR: m.lr, Beta1: m.momentum, Fresh1: 1 - m.momentum, Beta2: c.Beta2, Fresh2: 1 - c.Beta2,
		Eps: c.Eps, Root: math.Sqrt(1 - power(c.Beta2, m.step)), Scale: 1 - power(m.momentum, m.step),
		Decay: c.WeightDecay, Sign: sign(c.Maximize)}
}

// lambMove goes over the elements twice, for the length of the move must be known
// before the first of them moves, and computes the move twice rather than keep
// memory for it.
func lambMove[T real](e elements[T], by vector.Step) {
	var l vector.Lengths
	lambLengths(e, by, &l)
	by.LR *= lambTrust(&l)
	lambDescend(e, by)
}

// lambMany is lambMove of several elements at a time.
func lambMany(e elements[float32], by vector.Step) {
	var l vector.Lengths
	k := by.Lengths(&l, e.x, e.grad, e.memory)
	lambLengths(e.from(k), by, &l)
	by.LR *= lambTrust(&l)
	k = by.Move(e.x, e.grad, e.memory)
	lambDescend(e.from(k), by)
}

// lambLengths takes gradients into the means, and adds up the squares of elements and
// of their moves. Squares are added in float64, each eighth to one sum, in an order that
// depends on nothing but their number.
func lambLengths[T real](e elements[T], by vector.Step, l *vector.Lengths) {
	x, grad, mean, square := e.x, e.grad, e.memory[0], e.memory[1]
	beta1, fresh1, beta2, fresh2, sign := T(by.Beta1), T(by.Fresh1), T(by.Beta2), T(by.Fresh2), T(by.Sign)
	grad, mean, square = grad[:len(x)], mean[:len(x)], square[:len(x)]
	a := lambAdamOf[T](by)
	for i, v := range x {
		g := T(sign * grad[i])
		mean[i] = T(beta1*mean[i]) + T(fresh1*g)
		square[i] = T(beta2*square[i]) + T(fresh2*g*g)
		r := a.move(v, mean[i], square[i])
		l.X[i%vector.Lanes] += float64(float64(v) * float64(v))
		l.Move[i%vector.Lanes] += float64(float64(r) * float64(r))
	}
}

// lambTrust is what the rate is multiplied by: ‖p‖/‖r‖, or 1 where either is 0.
func lambTrust(l *vector.Lengths) float64 {
	size, length := pairwise(l.X), pairwise(l.Move)
	if size == 0 || length == 0 {
		return 1
	}
	return math.Sqrt(size) / math.Sqrt(length)
}

func pairwise(s [vector.Lanes]float64) float64 {
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

func lambDescend[T real](e elements[T], by vector.Step) {
	x, mean, square := e.x, e.memory[0], e.memory[1]
	lr, a := T(by.LR), lambAdamOf[T](by)
	mean, square = mean[:len(x)], square[:len(x)]
	for i, v := range x {
		x[i] = v - T(lr*a.move(v, mean[i], square[i]))
	}
}

// lambAdam is what one step's moves share.
type lambAdam[T real] struct{ scale, root, eps, decay T }

func lambAdamOf[T real](by vector.Step) lambAdam[T] {
	return lambAdam[T]{scale: T(by.Scale), root: T(by.Root), eps: T(by.Eps), decay: T(by.Decay)}
}

// move is r of element v, which has that mean and mean square of gradients.
func (a lambAdam[T]) move(v, mean, square T) T {
	return T(mean/a.scale/(T(math.Sqrt(float64(square)))/a.root+a.eps)) + T(a.decay*v)
}
