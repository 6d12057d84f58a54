package local

import (
	"math/rand/v2"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// pairTag is the tag of the messages that carry models. The group is a Replica's own.
const pairTag = 1

// partner is whom a rank meets at a step: all ranks are shuffled alike, and neighbours
// meet. Of an odd number one is left alone, which is its own partner.
func partner(seed uint64, step int64, rank, size int) int {
	order := rand.New(rand.NewPCG(seed, uint64(step))).Perm(size)
	for i, r := range order {
		if r != rank {
			continue
		}
		if i^1 < size {
			return order[i^1]
		}
	}
	return rank
}

// meet exchanges a part with this step's partner.
func (r *Replica) meet(c *part, step int64) {
	c.works, c.pair = nil, true
	with := partner(r.p.seed, step, r.g.Rank(), r.g.Size())
	if c.dtype == tensor.Float32 {
		pack[float32](r, c)
	} else {
		pack[float64](r, c)
	}
	if with == r.g.Rank() {
		// Alone, the mean of both is the own.
		_ = tensor.Copy(c.theirs, c.flight) // of one type, length and memory
		return
	}
	to := r.g.Global(with)
	c.works = []*ops.Work{r.g.Irecv(r.ctx, c.theirs, to, pairTag), r.g.Isend(r.ctx, c.flight, to, pairTag)}
}

// pack leaves the model in the flight.
func pack[T real](r *Replica, c *part) {
	each(c, func(flight, live, _, _ []T) { copy(flight, live) }, r.params, r.anchors, nil)
}

// join moves a part to the middle between both models as they were sent, and adds what
// this one has learnt since. Without a delay that is nothing, and both get the same bits,
// whichever way round they add.
func (r *Replica) join(c *part) {
	if c.dtype == tensor.Float32 {
		middle[float32](r, c)
	} else {
		middle[float64](r, c)
	}
}

func middle[T real](r *Replica, c *part) {
	theirs := elements[T](c.theirs)
	each(c, func(flight, live, _, _ []T) {
		for i, ours := range flight {
			live[i] = T(0.5*T(ours+theirs[i])) + T(live[i]-ours)
		}
		theirs = theirs[len(flight):]
	}, r.params, r.anchors, nil)
}
