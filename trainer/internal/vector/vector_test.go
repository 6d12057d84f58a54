package vector

import "testing"

func floats(n int) []float32 { return make([]float32, n) }

// TestMove sees how much a kernel takes. What it makes of that, package trainer compares
// with its loops.
func TestMove(t *testing.T) {
	for k := None; k <= LAMB+1; k++ {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 63, 1000} {
			want := n / Lanes * Lanes
			if !available || k == None || k > LAMB {
				want = 0
			}
			s := Step{Kernel: k, LR: 1, Sign: 1, Beta1: .5, Fresh1: 1, Eps: 1, Root: 1, Scale: 1}
			x, grad, memory := floats(n), floats(n), [3][]float32{floats(n), floats(n), floats(n)}
			for i := range grad {
				grad[i], memory[0][i], memory[1][i] = 1, 1, 1
			}
			if got := s.Move(x, grad, memory); got != want {
				t.Errorf("kernel %d takes %d of %d elements, want %d", k, got, n, want)
			}
			for i, v := range x {
				if (v != 0) != (i < want) {
					t.Errorf("kernel %d: element %d of %d has become %v", k, i, n, v)
				}
			}
		}
	}
}

// A slice that is too short panics before anything is read or written beyond it, and so does
// one that is missing.
func TestShort(t *testing.T) {
	if !available {
		t.Skip("no kernels for this processor and build")
	}
	for _, short := range [][]float32{make([]float32, 15, 32), nil} {
		for k := range 3 {
			s := [3][]float32{floats(16), floats(16), floats(16)}
			s[k] = short
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("argument %d of %d elements for 16 is taken", k, len(short))
					}
				}()
				Step{Kernel: Adadelta}.Move(floats(16), s[0], [3][]float32{s[1], s[2]})
			}()
		}
	}
}

func BenchmarkMove(b *testing.B) {
	const n = 1 << 16
	names := map[Kernel]string{SGD: "SGD", Adadelta: "Adadelta", Adagrad: "Adagrad", Adam: "Adam", RMSprop: "RMSprop", Lion: "Lion", LAMB: "LAMB"}
	for k := None + 1; k <= LAMB; k++ {
		b.Run(names[k], func(b *testing.B) {
			x, grad, memory := floats(n), floats(n), [3][]float32{floats(n), floats(n), floats(n)}
			for i := range grad {
				grad[i] = float32(i%9-4) / 4
			}
			s := Step{Kernel: k, LR: 1e-3, Sign: 1, Beta1: .9, Fresh1: .1, Beta2: .9, Fresh2: .1, Eps: 1e-3, Root: 1, Scale: 1}
			for b.Loop() {
				s.Move(x, grad, memory)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
}
