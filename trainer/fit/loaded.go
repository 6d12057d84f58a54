package fit

import (
	"context"
	"iter"
	"slices"

	"peermesh/trainer"
	"peermesh/trainer/data"
)

// Loaded is a set whose batches a [data.Loader] makes ahead, on goroutines of its own,
// dealt as [Samples] are. Deal takes the place of what a Loader's settings say of order
// and batches.
type Loaded[T, B any] struct {
	Set    data.Dataset[T]
	Deal   trainer.ElasticConfig
	Loader data.Config[T, B] // without Sampler, Batch, DropLast and Batches
}

// Len is that of the set.
func (d Loaded[T, B]) Len() int { return d.Set.Len() }

func (d Loaded[T, B]) dropsLast() bool { return d.Deal.DropLast }

// Batches deals the rest of an epoch and has a Loader make it.
func (d Loaded[T, B]) Batches(ctx context.Context, from Place) iter.Seq2[Batch[B], error] {
	return func(yield func(Batch[B], error) bool) {
		var all []Batch[B]
		var order dealt
		for share, err := range shares(d.Set.Len(), d.Deal, from) {
			if err != nil {
				yield(Batch[B]{}, err)
				return
			}
			all = append(all, outline[B](share))
			if len(share.Indices) > 0 {
				order = append(order, share.Indices)
			}
		}
		c := d.Loader
		c.Batches = order
		loader, err := data.NewLoader(d.Set, c)
		if err != nil {
			yield(Batch[B]{}, err)
			return
		}
		defer loader.Close()
		loader.SetEpoch(int(from.Epoch))
		next, stop := iter.Pull2(loader.Epoch(ctx))
		defer stop()
		for _, b := range all {
			var err error
			if b.Samples > 0 {
				b.Items, err, _ = next()
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// dealt is a rank's batches of the rest of an epoch, as a [data.Batcher].
type dealt [][]int

func (d dealt) SetEpoch(int)             {}
func (d dealt) Len() int                 { return len(d) }
func (d dealt) Batches() iter.Seq[[]int] { return slices.Values(d) }
