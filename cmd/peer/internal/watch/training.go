package watch

import "time"

// A Train is how far the training is.
type Train struct {
	Net      string  `json:"net,omitempty"`
	Epoch    int     `json:"epoch"` // from 1
	Epochs   int     `json:"epochs"`
	Step     int     `json:"step"` // since the beginning
	Steps    int     `json:"steps"`
	Loss     Number  `json:"loss"`
	Accuracy *Number `json:"accuracy"` // null before there is a test
	Rate     Number  `json:"rate"`     // samples a second, all ranks together
	Bytes    Number  `json:"bytes"`    // a second, sent and received by this rank
	Left     float64 `json:"left"`     // seconds until the last step, as it goes now
	Done     bool    `json:"done"`

	began time.Time
	taken int // steps, since this rank began
}

// Curves are those of the page.
type Curves struct {
	Loss      Curve `json:"loss"`
	EpochLoss Curve `json:"epoch_loss"`
	Accuracy  Curve `json:"accuracy"`
	Rate      Curve `json:"rate"`
}

// renew has curves be as others are now, in the memory that they have.
func (c *Curves) renew(from *Curves) {
	c.Loss.renew(&from.Loss)
	c.EpochLoss.renew(&from.EpochLoss)
	c.Accuracy.renew(&from.Accuracy)
	c.Rate.renew(&from.Rate)
}

// Began says that the training is about to take its first step: of epochs and steps, all
// together.
func (b *Board) Began(net string, epochs, steps int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.train.Net, b.train.Epochs, b.train.Steps = net, epochs, steps
	b.train.began, b.told = b.now(), b.now()
	b.note("started", "%s: epochs %d, steps %d", net, epochs, steps)
}

// Step says that a step was taken: the step-th since the beginning, in an epoch, with so
// many samples on all ranks together.
func (b *Board) Step(epoch, step, samples int, loss float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	t := &b.train
	t.Epoch, t.Step, t.Loss = epoch, step, Number(loss)
	t.taken++
	b.steps++
	b.count.samples += int64(samples)
	if passed := now.Sub(b.told); passed > 0 {
		t.Rate = Number(smooth(float64(t.Rate), float64(samples), passed))
	}
	b.told = now
	t.Left = max(0, float64(t.Steps-step)) * now.Sub(t.began).Seconds() / float64(t.taken)
	b.curves.Loss.add(float64(step), loss)
	b.curves.Rate.add(float64(step), float64(t.Rate))
}

// Epoch says that an epoch has ended, after so many steps since the beginning, with its
// mean loss over all ranks.
func (b *Board) Epoch(epoch, step int, loss float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.curves.EpochLoss.add(float64(step), loss)
	b.note("epoch", "epoch %d has ended: loss %.4f", epoch, loss)
}

// Tested says what share of the test set was right.
func (b *Board) Tested(step int, accuracy float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.train.Accuracy = new(Number(accuracy))
	b.curves.Accuracy.add(float64(step), accuracy)
	b.note("tested", "test accuracy %.2f %%", 100*accuracy)
}

// Done says that the run is over.
func (b *Board) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.train.Done, b.train.Left = true, 0
	b.note("done", "the run is over")
}

// BytesPerSecond is what this rank sends and receives, over the last seconds.
func (b *Board) BytesPerSecond() float64 {
	b.mu.Lock()
	p := b.place
	b.mu.Unlock()
	if p == nil {
		return 0
	}
	b.look(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.train.Bytes)
}
