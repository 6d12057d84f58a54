package layers

import (
	"fmt"
	"math"
)

// A Score is what a loss makes of a batch.
type Score struct {
	Sum   float64 // of the losses
	Count int     // of the labels, or floats, that counted
	Right int     // labels whose class has the largest output
}

// Mean is the mean loss, in nats; zero where nothing counted.
func (s Score) Mean() float64 { return s.Sum / float64(max(s.Count, 1)) }

// Accuracy is the part of the labels that are right.
func (s Score) Accuracy() float64 { return float64(s.Right) / float64(max(s.Count, 1)) }

// Plus is the score of two batches together.
func (s Score) Plus(t Score) Score {
	return Score{s.Sum + t.Sum, s.Count + t.Count, s.Right + t.Right}
}

// A Loss judges a network's output.
type Loss interface {
	// Init is told the shape of a sample's output, once.
	Init(out Shape) error

	// Score judges the outputs z of a batch. If dz is not nil it gets the gradient of
	// the mean.
	Score(p *Pass, b Batch, z, dz []float32) (Score, error)
}

// Ignored is a label that does not count, as in PyTorch.
const Ignored = -100

// A CrossEntropy is the negative log-likelihood of labels under the softmax of each
// row of the output, along its innermost dimension: torch.nn.CrossEntropyLoss.
type CrossEntropy struct {
	Ignore int32 // the label that does not count; zero: Ignored

	classes int
	z, dz   []float32
	labels  []int32
	counts  float64
	scores  [parts]Score
	errs    [parts]error
	job     func(worker, part int)
}

// Init is Loss's.
func (l *CrossEntropy) Init(out Shape) error {
	if l.classes = out.last(); l.classes < 2 || len(out) == 0 {
		return fmt.Errorf("layers: CrossEntropy: an output of %v", out)
	}
	if l.Ignore == 0 {
		l.Ignore = Ignored
	}
	l.job = l.part
	return nil
}

// Score is Loss's.
func (l *CrossEntropy) Score(p *Pass, b Batch, z, dz []float32) (Score, error) {
	rows := len(z) / l.classes
	if len(b.Labels) != rows {
		return Score{}, fmt.Errorf("layers: CrossEntropy: %d labels, want %d", len(b.Labels), rows)
	}
	l.z, l.dz, l.labels, l.counts = z, dz, b.Labels, 0
	for _, y := range b.Labels {
		if y != l.Ignore {
			l.counts++
		}
	}
	clear(l.scores[:])
	clear(l.errs[:])
	p.Each(cut(rows), l.job)
	var total Score
	for i, s := range l.scores {
		if l.errs[i] != nil {
			return Score{}, l.errs[i]
		}
		total = total.Plus(s)
	}
	return total, nil
}

func (l *CrossEntropy) part(_, part int) {
	lo, hi := bounds(len(l.labels), part)
	s := &l.scores[part]
	for i := lo; i < hi; i++ {
		z, label := l.z[i*l.classes:][:l.classes], l.labels[i]
		var d []float32
		if l.dz != nil {
			d = l.dz[i*l.classes:][:l.classes]
		}
		if label == l.Ignore {
			clear(d)
			continue
		}
		if label < 0 || int(label) >= l.classes {
			l.errs[part] = fmt.Errorf("layers: CrossEntropy: label %d is %d, want below %d", i, label, l.classes)
			return
		}
		loss, top := logLikelihood(z, int(label), d, l.counts)
		s.Sum += loss
		s.Count++
		if top == int(label) {
			s.Right++
		}
	}
}

// logLikelihood is the negative one of a label under softmax(z), and where z is
// largest. It sets d, unless nil, to the gradient divided by n.
func logLikelihood(z []float32, label int, d []float32, n float64) (loss float64, top int) {
	for j, v := range z {
		if v > z[top] {
			top = j
		}
	}
	sum := 0.0
	for j, v := range z {
		e := exp32(v - z[top])
		sum += float64(e)
		if d != nil {
			d[j] = e
		}
	}
	if d != nil {
		scale := float32(1 / (sum * n))
		for j := range d {
			d[j] *= scale
		}
		d[label] -= float32(1 / n)
	}
	return math.Log(sum) - float64(z[label]-z[top]), top
}

// An MSE is the mean of the squared differences from Batch.Targets, over all floats:
// torch.nn.MSELoss.
type MSE struct {
	z, dz, targets []float32
	sums           [parts]float64
	job            func(worker, part int)
}

// Init is Loss's.
func (l *MSE) Init(Shape) error {
	l.job = l.part
	return nil
}

// Score is Loss's.
func (l *MSE) Score(p *Pass, b Batch, z, dz []float32) (Score, error) {
	if len(b.Targets) != len(z) {
		return Score{}, fmt.Errorf("layers: MSE: %d targets, want %d", len(b.Targets), len(z))
	}
	l.z, l.dz, l.targets = z, dz, b.Targets
	clear(l.sums[:])
	p.Each(cut(len(z)), l.job)
	total := Score{Count: len(z)}
	for _, s := range l.sums {
		total.Sum += s
	}
	return total, nil
}

func (l *MSE) part(_, part int) {
	lo, hi := bounds(len(l.z), part)
	for i := lo; i < hi; i++ {
		d := l.z[i] - l.targets[i]
		l.sums[part] += float64(d) * float64(d)
		if l.dz != nil {
			l.dz[i] = 2 * d / float32(len(l.z))
		}
	}
}
