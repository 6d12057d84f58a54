package main

import (
	"context"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A benchOp is an operation that can be measured. How sizes are counted and what
// bus bandwidth is, is nccl-tests' convention (its doc/PERFORMANCE.md).
type benchOp struct {
	name    string
	bus     func(n float64) float64 // bus bandwidth over algorithm bandwidth, for n ranks
	parts   bool                    // the buffer is n equal parts, one a rank
	pair    bool                    // only ranks 0 and 1 take part, and rank 0 has the clock
	prepare func(s *stage) trial
}

func (o benchOp) String() string { return o.name }

// synonyms are other suites' names.
var synonyms = map[string]string{"latency": "pingpong", "bw": "stream", "alltoall": "all_to_all", "allreduce": "all_reduce", "allgather": "all_gather"}

// The factors: what a link carries of the buffer's bytes when the algorithm is the
// best there is.
func once(float64) float64    { return 1 }
func twice(n float64) float64 { return 2 * (n - 1) / n }
func apart(n float64) float64 { return (n - 1) / n }

// benchOps are all, in the order in which --op all measures them.
var benchOps = []benchOp{
	{"pingpong", once, false, true, pingpong},
	{"stream", once, false, true, stream},
	{"sendrecv", once, false, false, sendrecv},
	{"all_reduce", twice, false, false, allReduce},
	{"broadcast", once, false, false, broadcast},
	{"all_gather", apart, true, false, allGather},
	{"reduce", once, false, false, reduce},
	{"gather", apart, true, false, gather},
	{"scatter", apart, true, false, scatter},
	{"all_to_all", apart, true, false, allToAll},
	{"all_to_all_list", apart, true, false, allToAllList},
	{"reduce_scatter", apart, true, false, reduceScatter},
	{"barrier", func(float64) float64 { return 0 }, false, false, barrier},
}

// A stage is where one operation is measured at one size: n ranks, the root is 0.
type stage struct {
	g       *ops.Group
	rank, n int
	typ     benchType
	count   int // elements of the buffer, or of a part of it
}

// A trial is an operation with its buffers. The two functions that check it are
// called before and after a run that is not timed; timed runs work on what they
// leave. nil: there is nothing to do.
type trial struct {
	run    func(ctx context.Context) error
	before func()
	right  func() bool
	per    float64 // what the time of a run is divided by; zero: 1
}

// some makes room for so many parts.
func (s *stage) some(parts int) tensor.Tensor { return tensor.New(s.typ.dtype, parts*s.count) }

// part is a rank's part of a whole.
func (s *stage) part(x tensor.Tensor, rank int) tensor.Tensor {
	return x.Slice(rank*s.count, (rank+1)*s.count)
}

// every reports whether a condition holds for each rank's part.
func (s *stage) every(holds func(rank int) bool) bool {
	for rank := range s.n {
		if !holds(rank) {
			return false
		}
	}
	return true
}

// added is what both ways to sum in place have in common; gets says whether this rank
// gets the sum.
func (s *stage) added(gets bool, run func(ctx context.Context, x tensor.Tensor) *ops.Work) trial {
	x, zero := s.some(1), s.typ.pattern(func(int) int { return 0 })
	return trial{
		run:    func(ctx context.Context) error { return run(ctx, x).Wait() },
		before: func() { s.typ.added(s.rank).fill(x) },
		right: func() bool {
			ok := !gets || s.typ.sum(0, s.n).fills(x)
			zero.fill(x) // or it would grow for as long as it is measured
			return ok
		}}
}

func allReduce(s *stage) trial {
	return s.added(true, func(ctx context.Context, x tensor.Tensor) *ops.Work { return s.g.AllReduce(ctx, x, tensor.Sum) })
}

func reduce(s *stage) trial {
	return s.added(s.rank == 0, func(ctx context.Context, x tensor.Tensor) *ops.Work { return s.g.Reduce(ctx, x, tensor.Sum, 0) })
}

func broadcast(s *stage) trial {
	x := s.some(1)
	return trial{
		run: func(ctx context.Context) error { return s.g.Broadcast(ctx, x, 0).Wait() },
		before: func() {
			if s.rank == 0 {
				s.typ.moved(0).fill(x)
			}
		},
		right: func() bool { return s.typ.moved(0).fills(x) }}
}

// gathered is what both ways to gather have in common; gets says whether this rank gets
// the parts.
func (s *stage) gathered(gets bool, run func(ctx context.Context, out, in tensor.Tensor) *ops.Work) trial {
	in, out := s.some(1), tensor.Tensor{}
	if gets {
		out = s.some(s.n)
	}
	return trial{
		run:    func(ctx context.Context) error { return run(ctx, out, in).Wait() },
		before: func() { s.typ.moved(s.rank).fill(in) },
		right: func() bool {
			return !gets || s.every(func(rank int) bool { return s.typ.moved(rank).fills(s.part(out, rank)) })
		}}
}

func allGather(s *stage) trial { return s.gathered(true, s.g.AllGather) }

func gather(s *stage) trial {
	return s.gathered(s.rank == 0, func(ctx context.Context, out, in tensor.Tensor) *ops.Work { return s.g.Gather(ctx, out, in, 0) })
}

func scatter(s *stage) trial {
	in, out := tensor.Tensor{}, s.some(1)
	if s.rank == 0 {
		in = s.some(s.n)
	}
	return trial{
		run: func(ctx context.Context) error { return s.g.Scatter(ctx, out, in, 0).Wait() },
		before: func() {
			for rank := range s.n {
				if s.rank == 0 {
					s.typ.moved(rank).fill(s.part(in, rank))
				}
			}
		},
		right: func() bool { return s.typ.moved(s.rank).fills(out) }}
}

// exchange is what both ways to ask for an all-to-all have in common.
func (s *stage) exchange(run func(ctx context.Context, out, in tensor.Tensor) *ops.Work) trial {
	in, out := s.some(s.n), s.some(s.n)
	return trial{
		run: func(ctx context.Context) error { return run(ctx, out, in).Wait() },
		before: func() {
			for to := range s.n {
				s.typ.moved(s.rank*s.n + to).fill(s.part(in, to))
			}
		},
		right: func() bool {
			return s.every(func(from int) bool { return s.typ.moved(from*s.n + s.rank).fills(s.part(out, from)) })
		}}
}

func allToAll(s *stage) trial { return s.exchange(s.g.AllToAll) }

func allToAllList(s *stage) trial {
	list := func(x tensor.Tensor) (parts []tensor.Tensor) {
		for rank := range s.n {
			parts = append(parts, s.part(x, rank))
		}
		return parts
	}
	return s.exchange(func(ctx context.Context, out, in tensor.Tensor) *ops.Work {
		return s.g.AllToAllList(ctx, list(out), list(in))
	})
}

func reduceScatter(s *stage) trial {
	in, out := s.some(s.n), s.some(1)
	return trial{
		run: func(ctx context.Context) error { return s.g.ReduceScatter(ctx, out, in, tensor.Sum).Wait() },
		before: func() {
			for to := range s.n {
				s.typ.added(s.rank + to).fill(s.part(in, to))
			}
		},
		right: func() bool { return s.typ.sum(s.rank, s.n).fills(out) }}
}

func barrier(s *stage) trial {
	return trial{run: func(ctx context.Context) error { return s.g.Barrier(ctx).Wait() }}
}
