package data

import "fmt"

// A Position is where a Loader stands: before batch Batch of epoch Epoch. It is
// plain numbers, for any encoding. The others tell whether it is one of that loader.
type Position struct {
	Epoch   int
	Batch   int    // 0 to Batches
	Batches int    // of an epoch
	Samples int    // of the set
	Seed    uint64 // the loader's
}

// start is the beginning of an epoch.
func (l *Loader[T, B]) start(epoch int) Position {
	return Position{Epoch: epoch, Batches: l.batches.Len(), Samples: l.set.Len(), Seed: l.config.Seed}
}

// State is the position after the batch that the loop has, or had last. Within the
// loop, after the step, it is what a checkpoint of that step wants.
func (l *Loader[T, B]) State() Position { return l.at }

// Restore goes to a position, of this loader or of one that was made alike in
// another process. The number of batches must be the same: with another number of
// ranks, it takes a trainer.ElasticSampler to go on in the middle of an epoch.
// Between loops only.
func (l *Loader[T, B]) Restore(p Position) error {
	want := l.start(p.Epoch)
	want.Batch = p.Batch
	if p != want || p.Epoch < 0 || p.Batch < 0 || p.Batch > p.Batches {
		return fmt.Errorf("data: restore: %+v is no position of a loader of %d batches, %d samples and seed %d",
			p, want.Batches, want.Samples, want.Seed)
	}
	l.at = p
	return nil
}

// SetEpoch goes to the beginning of an epoch. Between loops only.
func (l *Loader[T, B]) SetEpoch(epoch int) { l.at = l.start(epoch) }
