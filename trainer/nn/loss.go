package nn

import "math"

// nll is the sum over the samples of the negative log-likelihood of their labels
// y under log_softmax(z), z being rows of classes floats, and how many labels
// are where their row is largest. If dz is not nil it gets the gradient of the
// mean. It computes in float64: ten numbers a sample cost nothing, and the loss
// is what runs are compared by.
func nll(z []float32, y []uint8, classes int, dz []float32) (loss float64, correct int) {
	var e [256]float64 // any uint8 label fits
	for i, label := range y {
		row := z[i*classes:][:classes]
		top := 0
		for j, v := range row {
			if v > row[top] {
				top = j
			}
		}
		if top == int(label) {
			correct++
		}
		sum := 0.0
		for j, v := range row {
			e[j] = math.Exp(float64(v) - float64(row[top]))
			sum += e[j]
		}
		loss += math.Log(sum) - (float64(row[label]) - float64(row[top]))
		if dz == nil {
			continue
		}
		d := dz[i*classes:][:classes]
		for j := range d {
			p := e[j] / sum
			if j == int(label) {
				p--
			}
			d[j] = float32(p / float64(len(y)))
		}
	}
	return loss, correct
}
