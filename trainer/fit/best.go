package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"peermesh/trainer"
)

// MaxTopK bounds how many checkpoints a BestCheckpoints keeps.
const MaxTopK = 1000

// BestCheckpoints keeps the states with the best values of a metric, one after each
// validation that earns it, and besides them the last one. It is Lightning's
// ModelCheckpoint. Put it behind the callbacks whose memory it shall keep.
//
// Both kinds are a [trainer.Checkpoints], in folders best and last of Dir, which all
// ranks share or each has one of. What is best is part of the run's state.
type BestCheckpoints struct {
	Base
	Dir     string
	Monitor string // the metric; zero: "val/loss"
	Max     bool   // it is to grow
	TopK    int    // how many of the best stay; zero: 1
	Last    bool   // keep the last one, too

	memory []float64 // of each of TopK: value, step, epoch; a step of -1: none
}

// A Ranked is a checkpoint and what earned it its place.
type Ranked struct {
	Value       float64
	Step, Epoch int64
}

// Memory is the values and places of the best.
func (b *BestCheckpoints) Memory() (string, []float64) {
	if b.memory == nil {
		for range min(max(b.TopK, 1), MaxTopK) {
			b.memory = append(b.memory, worst(b.Max), -1, -1)
		}
	}
	return "best_checkpoints." + monitored(b.Monitor) + "." + filepath.Base(b.Dir), b.memory
}

// Best is a checkpoints' folder with those of Ranking.
func (b *BestCheckpoints) Best() *trainer.Checkpoints {
	return &trainer.Checkpoints{Dir: filepath.Join(b.Dir, "best"), Keep: math.MaxInt}
}

// Latest is the folder with the last one.
func (b *BestCheckpoints) Latest() *trainer.Checkpoints {
	return &trainer.Checkpoints{Dir: filepath.Join(b.Dir, "last"), Keep: 1}
}

// Ranking is what is in Best, the best first, and of equals the oldest.
func (b *BestCheckpoints) Ranking() []Ranked {
	var all []Ranked
	for m := range slices.Chunk(b.memory, 3) {
		if m[1] >= 0 {
			all = append(all, Ranked{m[0], int64(m[1]), int64(m[2])})
		}
	}
	slices.SortFunc(all, func(x, y Ranked) int {
		switch {
		case better(x.Value, y.Value, 0, b.Max):
			return -1
		case better(y.Value, x.Value, 0, b.Max):
			return 1
		}
		return cmp.Compare(x.Step, y.Step)
	})
	return all
}

// FitStart refuses what could not be kept.
func (b *BestCheckpoints) FitStart(context.Context, *Run) error {
	if b.Dir == "" || b.TopK < 0 || b.TopK > MaxTopK {
		return fmt.Errorf("%d best in the folder %q: want a folder, and at most %d", b.TopK, b.Dir, MaxTopK)
	}
	return nil
}

// ValidationEnd saves what is among the best, and then removes what no longer is.
func (b *BestCheckpoints) ValidationEnd(ctx context.Context, r *Run) error {
	if r.FastRun() {
		return nil
	}
	value, err := lookUp(r, monitored(b.Monitor))
	if err != nil {
		return err
	}
	if b.Last {
		if err := r.Save(ctx, b.Latest()); err != nil {
			return err
		}
	}
	_, memory := b.Memory()
	at := r.Progress()
	var out []float64 // the place to fill: a free one, or that of the worst
	for m := range slices.Chunk(memory, 3) {
		if m[1] == float64(at.Step) && m[2] == float64(at.Epoch) {
			return nil // it has been saved, before this validation had to be done again
		}
		if out == nil || better(out[0], m[0], 0, b.Max) || m[1] < 0 && out[1] >= 0 {
			out = m
		}
	}
	if out[1] >= 0 && !better(value, out[0], 0, b.Max) || value != value {
		return nil
	}
	old := Ranked{out[0], int64(out[1]), int64(out[2])}
	out[0], out[1], out[2] = value, float64(at.Step), float64(at.Epoch)
	if err := r.Save(ctx, b.Best()); err != nil {
		return err
	}
	return b.remove(old)
}

// remove removes this rank's part of what is no longer among the best.
func (b *BestCheckpoints) remove(old Ranked) error {
	if old.Step < 0 {
		return nil
	}
	c := b.Best()
	all, err := c.List()
	for _, one := range all {
		if one.Step == old.Step && one.Epoch == old.Epoch {
			err = errors.Join(err, c.Remove(one))
		}
	}
	return err
}
