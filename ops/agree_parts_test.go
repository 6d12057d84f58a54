package ops_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// lists makes tensors of these lengths.
func lists(lengths ...int) (all []tensor.Tensor) {
	for _, n := range lengths {
		all = append(all, f32(n))
	}
	return all
}

// givenAt is x on one rank and nothing elsewhere.
func givenAt[T any](g *ops.Group, rank int, x T) (none T) {
	if g.Rank() == rank {
		return x
	}
	return none
}

// Every two of these are different calls, in a world of three. Those of one name
// differ in sizes that only some ranks know.
var dealing = map[string]func(g *ops.Group) error{
	"gather 0":     func(g *ops.Group) error { return g.Gather(ctx, givenAt(g, 0, f32(24)), f32(8), 0).Wait() },
	"gather 1":     func(g *ops.Group) error { return g.Gather(ctx, givenAt(g, 1, f32(24)), f32(8), 1).Wait() },
	"gather 9":     func(g *ops.Group) error { return g.Gather(ctx, givenAt(g, 0, f32(27)), f32(9), 0).Wait() },
	"gather big":   func(g *ops.Group) error { return g.Gather(ctx, givenAt(g, 0, f32(3<<17)), f32(1<<17), 0).Wait() },
	"gather list":  func(g *ops.Group) error { return g.GatherList(ctx, givenAt(g, 0, lists(8, 8, 8)), f32(8), 0).Wait() },
	"gather list+": func(g *ops.Group) error { return g.GatherList(ctx, givenAt(g, 0, lists(9, 9, 9)), f32(9), 0).Wait() },
	"scatter":      func(g *ops.Group) error { return g.Scatter(ctx, f32(8), givenAt(g, 0, f32(24)), 0).Wait() },
	"scatter 2":    func(g *ops.Group) error { return g.Scatter(ctx, f32(8), givenAt(g, 2, f32(24)), 2).Wait() },
	"scatter list": func(g *ops.Group) error { return g.ScatterList(ctx, f32(8), givenAt(g, 2, lists(8, 8, 8)), 2).Wait() },
	"scatter list+": func(g *ops.Group) error {
		return g.ScatterList(ctx, f32(9), givenAt(g, 2, lists(9, 9, 9)), 2).Wait()
	},
	"all_to_all":   func(g *ops.Group) error { return g.AllToAll(ctx, f32(24), f32(24)).Wait() },
	"all_to_all 9": func(g *ops.Group) error { return g.AllToAll(ctx, f32(9), f32(9)).Wait() },
	"all_to_all v": func(g *ops.Group) error {
		return g.AllToAllV(ctx, f32(24), f32(24), []int{8, 8, 8}, []int{8, 8, 8}).Wait()
	},
	"all_to_all v+": func(g *ops.Group) error {
		return g.AllToAllList(ctx, lists(9, 9, 9), lists(9, 9, 9)).Wait()
	},
	"all_gather list": func(g *ops.Group) error { return g.AllGatherList(ctx, lists(1, 3, 4), lists(1, 3, 4)[g.Rank()]).Wait() },
	"all_gather list 2": func(g *ops.Group) error {
		return g.AllGatherList(ctx, lists(4, 3, 1), lists(4, 3, 1)[g.Rank()]).Wait()
	},
	"reduce_scatter list": func(g *ops.Group) error {
		return g.ReduceScatterList(ctx, lists(1, 3, 4)[g.Rank()], lists(1, 3, 4), tensor.Sum).Wait()
	},
	"coalesced": func(g *ops.Group) error { return g.AllReduceCoalesced(ctx, lists(3, 5), tensor.Sum).Wait() },
	"coalesced 2": func(g *ops.Group) error {
		return g.AllReduceCoalesced(ctx, lists(5, 3), tensor.Sum).Wait()
	},
	"all_gather coalesced": func(g *ops.Group) error { return g.AllGatherCoalesced(ctx, lists(3, 6), lists(1, 2)).Wait() },
	"broadcast object":     func(g *ops.Group) error { _, err := ops.BroadcastObject(ctx, g, "a", 0); return err },
	"gather object":        func(g *ops.Group) error { _, err := ops.GatherObject(ctx, g, "a", 0); return err },
	"scatter object": func(g *ops.Group) error {
		_, err := ops.ScatterObject(ctx, g, givenAt(g, 0, []int{1, 2, 3}), 0)
		return err
	},
	"all_gather object": func(g *ops.Group) error { _, err := ops.AllGatherObject(ctx, g, "a"); return err },
	"measure":           func(g *ops.Group) error { return g.Measure(ctx) },
	"all_reduce":        func(g *ops.Group) error { return g.AllReduce(ctx, f32(8), tensor.Sum).Wait() },
	"barrier":           func(g *ops.Group) error { return g.Barrier(ctx).Wait() },
}

// As TestMismatch. Where ranks do not know each other's counts nobody can tell
// which of two is the odd one, and a third rank is told either.
func TestMismatchInParts(t *testing.T) {
	const n, odd = 3, 1
	tried := 0
	for theirs, most := range dealing {
		for ours, one := range dealing {
			if tried++; theirs == ours || raceDetector && tried%4 > 0 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				errs := world(n, ops.Config{}, func(g *ops.Group) error {
					call := most
					if g.Rank() == odd {
						call = one
					}
					err := call(g)
					for i := 0; err == nil && i < n; i++ {
						err = g.Barrier(ctx).Wait()
					}
					return err
				})
				for r, err := range errs {
					var m *ops.MismatchError
					switch {
					case !errors.As(err, &m), m.Ours == m.Theirs, m.Rank == r:
						t.Errorf("%s | %s: rank %d: %v", theirs, ours, r, err)
					case m.Ours.Kind != ops.KindAllToAllV && (m.Rank == odd) == (r == odd):
						t.Errorf("%s | %s: rank %d is told: %v", theirs, ours, r, err)
					}
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("%s | %s: took %v", theirs, ours, d)
				}
			})
		}
	}
}

// A part that does not fit is told to both with its own count.
func TestMismatchOfAPartReads(t *testing.T) {
	errs := world(3, ops.Config{}, func(g *ops.Group) error {
		return errors.Join(g.GatherList(ctx, givenAt(g, 2, lists(4, 5, 6)), f32([]int{4, 7, 6}[g.Rank()]), 2).Wait(), g.Barrier(ctx).Wait())
	})
	for r, says := range map[int]string{
		1: "ops: rank 2 has gather_list #0 (float32 × 5, root 2), we have gather_list #0 (float32 × 7, root 2): a part that",
		2: "ops: rank 1 has gather_list #0 (float32 × 7, root 2), we have gather_list #0 (float32 × 5, root 2): a part that",
	} {
		if err := errs[r]; err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// An argument that only the root gives is found wrong by one rank alone. All are
// told, and the group is of no more use.
func TestBadArgumentsOfOneRank(t *testing.T) {
	for _, c := range []struct {
		says string // by whom is its rank
		rank int
		call func(g *ops.Group) *ops.Work
	}{
		{"gather: out is missing at the root, rank 0", 0, func(g *ops.Group) *ops.Work { return g.Gather(ctx, tensor.Tensor{}, f32(2), 0) }},
		{"gather: out is given by rank 1: it is for the root, rank 0", 1, func(g *ops.Group) *ops.Work {
			return g.Gather(ctx, []tensor.Tensor{f32(6), f32(6), {}}[g.Rank()], f32(2), 0)
		}},
		{"gather: out is float32[5]: want 3 times the float32[2] of in", 0, func(g *ops.Group) *ops.Work { return g.Gather(ctx, givenAt(g, 0, f32(5)), f32(2), 0) }},
		{"gather_list: out has 2 tensors: want one for each of 3 ranks", 2, func(g *ops.Group) *ops.Work { return g.GatherList(ctx, givenAt(g, 2, lists(1, 1)), f32(1), 2) }},
		{"gather_list: out is missing at the root, rank 1", 1, func(g *ops.Group) *ops.Work { return g.GatherList(ctx, nil, f32(1), 1) }},
		{"gather_list: out[1] is int32[1]: want float32, as the others", 0, func(g *ops.Group) *ops.Work {
			return g.GatherList(ctx, givenAt(g, 0, []tensor.Tensor{f32(1), tensor.New(tensor.Int32, 1), f32(1)}), f32(1), 0)
		}},
		{"gather_list: out[0] is float32[2], in is float32[1]", 0, func(g *ops.Group) *ops.Work { return g.GatherList(ctx, givenAt(g, 0, lists(2, 1, 1)), f32(1), 0) }},
		{"scatter: in is missing at the root, rank 1", 1, func(g *ops.Group) *ops.Work { return g.Scatter(ctx, f32(2), tensor.Tensor{}, 1) }},
		{"scatter: in is float32[4]: want 3 times", 1, func(g *ops.Group) *ops.Work { return g.Scatter(ctx, f32(2), givenAt(g, 1, f32(4)), 1) }},
		{"scatter_list: in[2] is the zero Tensor", 0, func(g *ops.Group) *ops.Work {
			return g.ScatterList(ctx, f32(1), givenAt(g, 0, append(lists(1, 1), tensor.Tensor{})), 0)
		}},
		{"scatter_list: in is given by rank 2: it is for the root, rank 0", 2, func(g *ops.Group) *ops.Work {
			return g.ScatterList(ctx, f32(1), [][]tensor.Tensor{lists(1, 1, 1), nil, lists(1, 1, 1)}[g.Rank()], 0)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			for r, err := range world(3, ops.Config{}, func(g *ops.Group) error {
				first := c.call(g).Wait()
				for range 3 { // one whose part was done learns it now
					if first == nil {
						first = g.Barrier(ctx).Wait()
					}
				}
				if g.Barrier(ctx).Wait() == nil {
					t.Errorf("%s: the group goes on", c.says)
				}
				return first
			}) {
				var a *ops.AbortedError
				if err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, &a) != (r != c.rank) || a != nil && a.Rank != c.rank {
					t.Errorf("rank %d: %v, want %q", r, err, c.says)
				}
			}
		})
	}
}

// What every rank finds wrong is an error before anything moves.
func TestBadParts(t *testing.T) {
	f := f32
	i32 := func(n int) tensor.Tensor { return tensor.New(tensor.Int32, n) }
	shaped := func(shape ...int) tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	cases := map[string]func(g *ops.Group) *ops.Work{
		"gather: root 2 is not in":       func(g *ops.Group) *ops.Work { return g.Gather(ctx, tensor.Tensor{}, f(1), 2) },
		"gather_list: root -1 is not in": func(g *ops.Group) *ops.Work { return g.GatherList(ctx, nil, f(1), -1) },
		"scatter: root 9 is not in":      func(g *ops.Group) *ops.Work { return g.Scatter(ctx, f(1), tensor.Tensor{}, 9) },
		"scatter_list: x is the zero":    func(g *ops.Group) *ops.Work { return g.ScatterList(ctx, tensor.Tensor{}, nil, 0) },
		"out is float32[3 4]: want 2 times the float32[3 2] of in": func(g *ops.Group) *ops.Work {
			return g.AllGather(ctx, shaped(3, 4), shaped(3, 2))
		},
		"out is float32[2 2 3]: want 2 times": func(g *ops.Group) *ops.Work { return g.AllGather(ctx, shaped(2, 2, 3), shaped(3, 2)) },
		"all_gather: out has 1 tensors":       func(g *ops.Group) *ops.Work { return g.AllGatherList(ctx, lists(1), f(1)) },
		"out[1] is int32[1]: want float32": func(g *ops.Group) *ops.Work {
			return g.AllGatherList(ctx, []tensor.Tensor{f(1), i32(1)}, f(1))
		},
		"what a rank gives itself":      func(g *ops.Group) *ops.Work { return g.AllGatherList(ctx, lists(1, 1), f(2)) },
		"reduce_scatter: in has 3":      func(g *ops.Group) *ops.Work { return g.ReduceScatterList(ctx, f(1), lists(1, 1, 1), tensor.Sum) },
		"what a rank keeps":             func(g *ops.Group) *ops.Work { return g.ReduceScatterList(ctx, f(2), lists(1, 1), tensor.Sum) },
		"reduce_scatter: tensor: op(0)": func(g *ops.Group) *ops.Work { return g.ReduceScatterList(ctx, f(1), lists(1, 1), tensor.Op{}) },
		"xs is empty":                   func(g *ops.Group) *ops.Work { return g.AllReduceCoalesced(ctx, nil, tensor.Sum) },
		"xs[2] is int32[4]: want float32, as the others": func(g *ops.Group) *ops.Work {
			return g.AllReduceCoalesced(ctx, []tensor.Tensor{f(1), f(2), i32(4)}, tensor.Sum)
		},
		"xs[0] is the zero Tensor":                        func(g *ops.Group) *ops.Work { return g.AllReduceCoalesced(ctx, make([]tensor.Tensor, 2), tensor.Sum) },
		"outs has 1 tensors, ins 2":                       func(g *ops.Group) *ops.Work { return g.AllGatherCoalesced(ctx, lists(2), lists(1, 1)) },
		"outs[1] is float32[3]: want 2":                   func(g *ops.Group) *ops.Work { return g.AllGatherCoalesced(ctx, lists(2, 3), lists(1, 1)) },
		"all_to_all: out is float32[3], in is float32[4]": func(g *ops.Group) *ops.Work { return g.AllToAll(ctx, f(3), f(4)) },
		"all_to_all: in is float32[3 2]: 2 ranks do not divide its first dimension": func(g *ops.Group) *ops.Work {
			return g.AllToAll(ctx, f(6), shaped(3, 2))
		},
		"outSplits is [1 1]: want numbers that add up to 3, the first dimension of float32[3 2]": func(g *ops.Group) *ops.Work {
			return g.AllToAllV(ctx, shaped(3, 2), f(2), []int{1, 1}, []int{1, 1})
		},
		"inSplits is [3 -1]":               func(g *ops.Group) *ops.Work { return g.AllToAllV(ctx, f(2), f(2), nil, []int{3, -1}) },
		"inSplits has 1 numbers":           func(g *ops.Group) *ops.Work { return g.AllToAllV(ctx, f(2), f(2), nil, []int{2}) },
		"in is float32[3]: 2 ranks do not": func(g *ops.Group) *ops.Work { return g.AllToAllV(ctx, f(2), f(3), nil, nil) },
		"in has 3 tensors":                 func(g *ops.Group) *ops.Work { return g.AllToAllList(ctx, lists(1, 1), lists(1, 1, 1)) },
		"in is empty":                      func(g *ops.Group) *ops.Work { return g.AllToAllList(ctx, nil, nil) },
		"what a rank gives itself must": func(g *ops.Group) *ops.Work {
			return g.AllToAllList(ctx, lists(1, 1), lists(2, 2))
		},
	}
	for says, call := range cases {
		check(t, world(2, ops.Config{}, func(g *ops.Group) error {
			err := call(g).Wait()
			if err == nil || !strings.HasPrefix(err.Error(), "ops: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want it to say %q", err, says)
			}
			return g.AllReduce(ctx, f(4), tensor.Sum).Wait()
		}))
	}
}

// A process that is no member does nothing, whatever it was given.
func TestPartsOfNonMembers(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		some, err := g.Split(ctx, []int{0, 2})
		if err != nil || some.Rank() >= 0 {
			return err
		}
		x := tensor.Tensor{}
		works := []*ops.Work{
			some.Gather(ctx, x, f32(1), 1), some.GatherList(ctx, lists(1), f32(1), 1), some.Scatter(ctx, f32(1), x, 1),
			some.ScatterList(ctx, f32(1), nil, 1), some.AllToAll(ctx, x, x), some.AllToAllV(ctx, x, x, nil, nil),
			some.AllToAllList(ctx, nil, nil), some.AllGatherList(ctx, nil, x), some.ReduceScatterList(ctx, x, nil, tensor.Sum),
			some.AllReduceCoalesced(ctx, nil, tensor.Sum), some.AllGatherCoalesced(ctx, nil, nil), some.ReduceScatter(ctx, f32(1), f32(5), tensor.Sum),
			some.Reduce(ctx, f32(1), tensor.Sum, 1),
		}
		for _, w := range works {
			err = errors.Join(err, w.Wait())
		}
		got, err2 := ops.AllGatherObject(context.Background(), some, 1)
		if len(got) > 0 {
			t.Errorf("got %v", got)
		}
		return errors.Join(err, err2, some.Measure(ctx))
	}))
}
