package trainer

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/trainer/internal/vector"
)

// vectorLoops are what the kernels must do to each element.
var vectorLoops = map[vector.Kernel]loop[float32]{
	vector.SGD:      sgdMove[float32],
	vector.Adadelta: adadeltaMove[float32],
	vector.Adagrad:  adagradMove[float32],
	vector.Adam:     adamMove[float32],
	vector.RMSprop:  rmspropMove[float32],
	vector.Lion:     lionMove[float32],
	vector.LAMB:     lambMove[float32],
}

// vectorSlots is how many slots of memory a kernel must have; the others may be absent.
var vectorSlots = map[vector.Kernel]int{vector.SGD: 1, vector.Adadelta: 2, vector.Adagrad: 1, vector.Adam: 2, vector.RMSprop: 1, vector.Lion: 1, vector.LAMB: 2}

// awkward are numbers at which a careless kernel differs.
var awkward = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, 1e-38, -1e-41,
	math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}

// awkwardSlice is n numbers of all magnitudes, awkward ones among them, that begin at any
// multiple of four bytes.
func awkwardSlice(r *rand.Rand, n int) []float32 {
	off := r.IntN(8)
	s := make([]float32, off+n)[off:]
	for i := range s {
		s[i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(13)-8)))
		if r.IntN(8) == 0 {
			s[i] = awkward[r.IntN(len(awkward))]
		}
	}
	return s
}

// tameSlice is n positive numbers, of which norms are finite.
func tameSlice(r *rand.Rand, n int) []float32 {
	s := awkwardSlice(r, n)
	for i := range s {
		s[i] = float32(r.ExpFloat64())
	}
	return s
}

// zeroSlice is n zeros of either sign.
func zeroSlice(r *rand.Rand, n int) []float32 {
	s := awkwardSlice(r, n)
	for i := range s {
		s[i] = awkward[r.IntN(2)]
	}
	return s
}

// awkwardStep has the numbers of common settings, in any combination.
func awkwardStep(r *rand.Rand, k vector.Kernel) vector.Step {
	pick := func(from ...float64) float64 { return from[r.IntN(len(from))] }
	s := vector.Step{Kernel: k, LR: pick(0, 1e-3, .1, 1, math.Inf(1)), Sign: pick(1, -1), Decay: pick(0, 0, .01, 1e300, math.Copysign(0, -1)),
		Beta1: pick(0, .9, .5, 1), Beta2: pick(.999, .9, 0), Eps: pick(0, 1e-8, 1e-3), Root: pick(0, .03, 1), Scale: pick(1, .999, .5),
		Nesterov: pick(0, 1) == 1}
	s.Fresh1, s.Fresh2 = pick(1-s.Beta1, 1), 1-s.Beta2
	return s
}

func cloned(e elements[float32]) elements[float32] {
	e.x, e.grad = slices.Clone(e.x), slices.Clone(e.grad)
	for k, m := range e.memory {
		e.memory[k] = slices.Clone(m)
	}
	return e
}

// checkVector has a kernel and the loop for what it leaves over do what the loop does alone,
// to the same bits, or two NaNs: which NaN comes out of a sum is not for the language to say.
func checkVector(t *testing.T, e elements[float32], by vector.Step) {
	t.Helper()
	want := cloned(e)
	vectorLoops[by.Kernel](want, by)
	if by.Kernel == vector.LAMB {
		lambMany(e, by)
	} else {
		many(vectorLoops[by.Kernel])(e, by)
	}
	for which, got := range [][]float32{e.x, e.grad, e.memory[0], e.memory[1], e.memory[2]} {
		want := [][]float32{want.x, want.grad, want.memory[0], want.memory[1], want.memory[2]}[which]
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
				t.Fatalf("%+v: element %d of %d of slice %d is %v, want %v", by, i, len(got), which, v, want[i])
			}
		}
	}
}

func TestVector(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kernel := range vectorLoops {
		t.Run(fmt.Sprint(kernel), func(t *testing.T) {
			for round := range 300 {
				n := r.IntN(40)
				if round == 0 {
					n = 1001
				}
				some := []func(r *rand.Rand, n int) []float32{awkwardSlice, tameSlice, zeroSlice}[round%3]
				e := elements[float32]{x: some(r, n), grad: some(r, n)}
				for slot := range e.memory {
					if slot < vectorSlots[kernel] || r.IntN(2) == 0 {
						e.memory[slot] = some(r, n)
					}
				}
				by := awkwardStep(r, kernel)
				if e.memory[2] == nil && kernel == vector.RMSprop {
					by.Beta1 = 0
				}
				checkVector(t, e, by)
			}
		})
	}
}

// FuzzVector reads a step and elements from any bytes.
func FuzzVector(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		seed := make([]byte, 4*(10+5*20))
		for i := 0; i < len(seed); i += 4 {
			binary.LittleEndian.PutUint32(seed[i:], math.Float32bits(awkwardSlice(r, 1)[0]))
		}
		f.Add(seed, uint8(r.Uint32()), uint8(r.Uint32()))
	}
	f.Fuzz(func(t *testing.T, text []byte, kernel, has uint8) {
		all := make([]float32, len(text)/4)
		for i := range all {
			all[i] = math.Float32frombits(binary.LittleEndian.Uint32(text[4*i:]))
		}
		by := vector.Step{Kernel: 1 + vector.Kernel(kernel)%vector.Kernel(len(vectorLoops)), Nesterov: has&4 != 0}
		for _, v := range []*float64{&by.LR, &by.Decay, &by.Beta1, &by.Fresh1, &by.Beta2, &by.Fresh2, &by.Eps, &by.Root, &by.Scale} {
			if len(all) != 0 {
				*v, all = math.Abs(float64(all[0])), all[1:] // settings are not negative
			}
		}
		by.Sign = 1 - float64(has&8)/4
		n := len(all) / 5
		e := elements[float32]{x: all[:n], grad: all[n : 2*n], memory: [3][]float32{all[2*n : 3*n], all[3*n : 4*n], all[4*n : 5*n]}}
		for slot := vectorSlots[by.Kernel]; slot < 3; slot++ {
			if has>>slot&1 == 0 && (slot != 2 || by.Kernel != vector.RMSprop) {
				e.memory[slot] = nil
			}
		}
		checkVector(t, e, by)
	})
}
