package main

import (
	"fmt"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// What a ledger adds up. All of it is exact: losses apart they are whole numbers
// below 2^53.
const (
	ledgerLoss  = iota // sum over the samples
	ledgerCount        // of samples
	ledgerMarks        // sum of each sample's mark
	ledgerSize
)

// A ledger is the account of an epoch: which samples have been learnt from. A step
// adds each rank's own part by an all-reduce, as it does with the gradients, and it
// is part of the state that a newcomer gets. So it is a proof of its own that what
// the parameters have learnt is each sample once, whatever became of the ranks.
type ledger struct {
	epoch []float64 // of the finished steps
	last  []float64 // of the last of these
	step  []float64 // of the step that is being taken
}

func newLedger() *ledger {
	return &ledger{make([]float64, ledgerSize), make([]float64, ledgerSize), make([]float64, ledgerSize)}
}

// state are its tensors, for a trainer.State.
func (l *ledger) state() []*trainer.Param {
	return []*trainer.Param{{Name: "ledger.epoch", Value: tensor.Of(l.epoch)}, {Name: "ledger.last", Value: tensor.Of(l.last)}}
}

// mark is a number by which a sample is known among others, below 2^32: what two
// sets of samples have as sums is hardly ever the same by chance.
func mark(sample int) float64 {
	x := uint64(sample)*0x9e3779b97f4a7c15 + 0xd1b54a32d192ed03
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return float64(uint32(x >> 32))
}

// note writes down this rank's part of a step, to be added up over the ranks.
func (l *ledger) note(samples []int, loss float64) {
	clear(l.step)
	for _, s := range samples {
		l.step[ledgerMarks] += mark(s)
	}
	l.step[ledgerCount] = float64(len(samples))
	l.step[ledgerLoss] = loss * float64(len(samples))
}

// commit makes the step count.
func (l *ledger) commit() {
	for i, x := range l.step {
		l.epoch[i] += x
	}
	copy(l.last, l.step)
}

// clear begins an epoch.
func (l *ledger) clear() { clear(l.epoch) }

func (l *ledger) samples() int      { return int(l.epoch[ledgerCount]) }
func (l *ledger) loss() float64     { return l.epoch[ledgerLoss] / l.epoch[ledgerCount] }
func (l *ledger) lastLoss() float64 { return l.last[ledgerLoss] / l.last[ledgerCount] }

// audit compares a whole epoch with a data set of n samples.
func (l *ledger) audit(n int) error {
	var marks float64
	for s := range n {
		marks += mark(s)
	}
	if l.samples() == n && l.epoch[ledgerMarks] == marks {
		return nil
	}
	return fmt.Errorf("the epoch has learnt from %d samples, not from each of %d once", l.samples(), n)
}
