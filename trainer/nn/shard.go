package nn

import (
	"math/bits"

	"peermesh/trainer/nn/internal/kern"
)

// How sums over samples are taken.
//
// A batch of n samples is cut into shards(n) shards, shard s being samples s,
// s+shards, s+2·shards and so on. A shard's samples are added up in order, and
// the shards as a binary tree that folds the upper half onto the lower one. The
// cut depends on n alone, so the bits of a gradient do not depend on threads.
//
// Nor do they depend on the ranks that share out a batch, if these are a power of
// two, take every so-many-th sample, as trainer.DistributedSampler does, and each
// have a power of two times group samples, at most parts·group. For then a rank's
// shards are shards of the whole batch, its tree is a branch of the whole tree,
// and an all-reduce that folds the upper half of the ranks onto the lower one is
// the rest of it.

const (
	// group is the size of a shard, where a batch is a multiple of it. A shard pays
	// for its own sums, about as much as for one sample.
	group = 8
	// parts is how many shards there are at most, and pieces of any job; more
	// threads than that are idle.
	parts = 16
)

func shards(n int) int { return max(1, min(n/group, parts)) }

// bounds are the places of a shard's samples, [lo, hi), when samples lie shard by
// shard.
func bounds(n, shards, shard int) (lo, hi int) {
	at := func(s int) int { return s*(n/shards) + min(s, n%shards) }
	return at(shard), at(shard + 1)
}

// deal puts a batch's samples shard by shard: x into xs, labels into ys.
func deal(b Batch, pixels, shards int, xs []float32, ys []uint8) {
	at := 0
	for s := range shards {
		for i := s; i < len(b.Y); i += shards {
			copy(xs[at*pixels:], b.X[i*pixels:(i+1)*pixels])
			ys[at] = b.Y[i]
			at++
		}
	}
}

// half is the distance over which a tree over n shards folds first.
func half(n int) int { return 1 << bits.Len(uint(n-1)) / 2 }

// fold adds up one number of each shard. It uses v as scratch.
func fold(v []float32) float32 {
	for d := half(len(v)); d > 0; d /= 2 {
		for s := range min(d, len(v)-d) {
			v[s] += v[s+d]
		}
		v = v[:d]
	}
	return v[0]
}

// foldRows adds up a row of width numbers of each shard, in the first.
func foldRows(e kern.Engine, rows []float32, width int) []float32 {
	n := len(rows) / width
	for d := half(n); d > 0; d /= 2 {
		e.Add(rows[:min(d, n-d)*width], rows[d*width:])
		n = d
	}
	return rows[:width]
}
