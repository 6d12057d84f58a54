package ops_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// sample is every rank's elements of any type, such that a sum has no rounding
// and so the same bits in any order: floats are small whole numbers, of which
// Avg and PremulSum make others that one rounding gives.
func sample(t tensor.DType, world, n int) []tensor.Tensor {
	rng := rand.New(rand.NewPCG(uint64(t), uint64(n)))
	xs := make([]tensor.Tensor, world)
	for r := range xs {
		switch t {
		case tensor.Float16:
			xs[r] = tensor.Of(fill(n, func() tensor.F16 { return tensor.ToF16(float32(rng.IntN(5) - 2)) }))
		case tensor.BFloat16:
			xs[r] = tensor.Of(fill(n, func() tensor.BF16 { return tensor.ToBF16(float32(rng.IntN(5) - 2)) }))
		case tensor.Float32, tensor.Float64:
			xs[r] = filled(t, n, rng.Uint64(), true)
		default:
			xs[r] = tensor.New(t, n)
			p, _ := xs[r].View(0, xs[r].Bytes())
			tensortest.Fill(p, t, rng)
			_, _ = xs[r].WriteAt(p, 0) // makes bools of the bytes
		}
	}
	return xs
}

// reduced is what one machine makes of all ranks' elements: each times its
// factor, if there is one, folded one after the other, and divided if asked for.
func reduced(xs []tensor.Tensor, op tensor.Op, factor func(rank int) float64) []byte {
	t := xs[0].DType()
	var sum []byte
	for r, x := range xs {
		p := bytesOf(x)
		if factor != nil {
			tensortest.Scale(p, t, factor(r))
		}
		if sum == nil {
			sum = p
			continue
		}
		tensortest.Reduce(sum, p, t, op)
	}
	if op == tensor.Avg {
		tensortest.Divide(sum, t, len(xs))
	}
	return sum
}

// A reduction is an op as each rank calls it.
type reduction struct {
	name   string
	op     func(rank int) tensor.Op
	factor func(rank int) float64 // nil: none
}

func reductionsOf(t tensor.DType) []reduction {
	var all []reduction
	for _, op := range tensortest.Ops(t) {
		if op.Code() == tensor.PremulSum(1).Code() {
			factor := func(rank int) float64 { return float64(rank + 1) } // each rank its own
			all = append(all, reduction{"premul_sum", func(rank int) tensor.Op { return tensor.PremulSum(factor(rank)) }, factor})
			continue
		}
		all = append(all, reduction{op.String(), func(int) tensor.Op { return op }, nil})
	}
	return all
}

// plain hides a memory's View, as a GPU's.
type plain struct{ tensor.Memory }

func hidden(x tensor.Tensor) tensor.Tensor {
	return tensor.In(plain{x.Memory()}, x.DType(), x.Len())
}

func same(what string, got tensor.Tensor, want []byte) error {
	if p := bytesOf(got); !bytes.Equal(p, want) {
		return fmt.Errorf("%s: got %x…, want %x…", what, p[:min(len(p), 16)], want[:min(len(want), 16)])
	}
	return nil
}

// A sampled reduction is one with every rank's elements and the result.
type sampled struct {
	reduction
	what string
	xs   []tensor.Tensor
	want []byte
}

func samples(world int, sizes ...int) []sampled {
	var all []sampled
	for _, dt := range tensortest.DTypes() {
		for _, red := range reductionsOf(dt) {
			for _, size := range sizes {
				xs := sample(dt, world, size)
				what := fmt.Sprintf("%s of %v × %d among %d", red.name, dt, size, world)
				all = append(all, sampled{red, what, xs, reduced(xs, red.op(0), red.factor)})
			}
		}
	}
	return all
}

// Every op of every type, on every rank, by every algorithm.
func TestReductions(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		all := samples(n, n+1, 67)
		for _, algorithm := range []string{"", "ring"} { // the matrix has the others
			check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
				for _, s := range all {
					x := clone(s.xs[g.Rank()])
					if x.Len() == n+1 { // not in the host's reach
						x = hidden(x)
					}
					if err := g.AllReduce(ctx, x, s.op(g.Rank())).Wait(); err != nil {
						return err
					}
					if err := same(s.what, x, s.want); err != nil {
						return fmt.Errorf("all_reduce by %q: %w", algorithm, err)
					}
				}
				return nil
			}))
		}
	}
}

// Reduce leaves the result on dst and the others' tensors alone, ReduceScatter
// its input.
func TestReductionsToSome(t *testing.T) {
	const part = 17
	for _, n := range []int{1, 2, 3, 4} {
		all := samples(n, n*part)
		check(t, world(n, ops.Config{}, func(g *ops.Group) error {
			for _, s := range all {
				if err := reducesToSome(g, s, part); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

func reducesToSome(g *ops.Group, s sampled, part int) error {
	op, dst := s.op(g.Rank()), g.Size()-1
	x, untouched := clone(s.xs[g.Rank()]), bytesOf(s.xs[g.Rank()])
	if err := g.Reduce(ctx, x, op, dst).Wait(); err != nil {
		return err
	}
	want := untouched
	if g.Rank() == dst {
		want = s.want
	}
	if err := same("reduce, "+s.what, x, want); err != nil {
		return err
	}
	out, in := tensor.New(x.DType(), part), clone(s.xs[g.Rank()])
	if err := g.ReduceScatter(ctx, out, in, op).Wait(); err != nil {
		return err
	}
	size := part * x.DType().Size()
	if err := same("reduce_scatter, "+s.what, out, s.want[g.Rank()*size:(g.Rank()+1)*size]); err != nil {
		return err
	}
	return same("input of reduce_scatter, "+s.what, in, untouched)
}

// An average of floats that round, and one that the ranks scale by thirds, has
// the same bits on all ranks.
func TestReplicasOfRoundedResults(t *testing.T) {
	const n, size = 5, 1003
	for _, algorithm := range algorithms[ops.KindAllReduce] {
		for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
			for _, op := range []tensor.Op{tensor.Avg, tensor.PremulSum(1. / 3)} {
				results := make([][]byte, n)
				check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
					x := tensor.New(dt, size)
					p, _ := x.View(0, x.Bytes())
					rng := rand.New(rand.NewPCG(2, uint64(g.Rank())))
					for i := range size {
						tensortest.Fill(p[i*dt.Size():(i+1)*dt.Size()], dt, rng)
					}
					err := g.AllReduce(ctx, x, op).Wait()
					results[g.Rank()] = bytesOf(x)
					return err
				}))
				for r, p := range results {
					if !tensortest.Equal(p, results[0], dt) {
						t.Errorf("%q, %v, %v: rank %d has other bits", algorithm, dt, op, r)
					}
				}
			}
		}
	}
}

// A caller's function runs on the host, wherever the elements are.
func TestReduceByFunc(t *testing.T) {
	const n, size = 4, 100
	for _, algorithm := range algorithms[ops.KindAllReduce] {
		check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
			gcd := tensor.Func("gcd", func(a, b uint32) uint32 {
				for b != 0 {
					a, b = b, a%b
				}
				return a
			})
			for _, hide := range []bool{false, true} {
				values := make([]uint32, size)
				for i := range values {
					values[i] = uint32((i + 1) * (g.Rank() + 2) * 7)
				}
				x := tensor.Of(values)
				if hide {
					x = hidden(x)
				}
				if err := g.AllReduce(ctx, x, gcd).Wait(); err != nil {
					return err
				}
				for i, v := range values {
					if v != uint32(i+1)*7 {
						return fmt.Errorf("element %d is %d", i, v)
					}
				}
			}
			return nil
		}))
	}
}

// Ranks whose ops differ are told so; ranks whose factors do are not.
func TestReductionsDisagree(t *testing.T) {
	add := func(a, b float32) float32 { return a + b }
	for _, c := range []struct {
		ours, theirs tensor.Op
		says         string
	}{
		{tensor.Sum, tensor.Avg, "avg"},
		{tensor.Avg, tensor.PremulSum(1), "premul_sum"},
		{tensor.Func("add", add), tensor.Func("plus", add), "function"},
	} {
		for r, err := range world(2, ops.Config{}, func(g *ops.Group) error {
			op := c.ours
			if g.Rank() == 1 {
				op = c.theirs
			}
			return g.AllReduce(ctx, f32(8), op).Wait()
		}) {
			var m *ops.MismatchError
			if !errors.As(err, &m) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v and %v: rank %d: %v", c.ours, c.theirs, r, err)
			}
		}
	}
}

// What no rank could compute is refused before anything moves.
func TestReductionsRefused(t *testing.T) {
	f := func(t tensor.DType) tensor.Tensor { return tensor.New(t, 2) }
	ring := schedule.AllReduce(schedule.Ring(2))
	for says, call := range map[string]func(g *ops.Group) *ops.Work{
		"band of float16: it is for integers and bool": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f(tensor.Float16), tensor.BitAnd) },
		"avg of bool: it is for numbers":               func(g *ops.Group) *ops.Work { return g.Reduce(ctx, f(tensor.Bool), tensor.Avg, 0) },
		"0.5 is not one of its values": func(g *ops.Group) *ops.Work {
			return g.ReduceScatter(ctx, tensor.New(tensor.Int8, 1), f(tensor.Int8), tensor.PremulSum(.5))
		},
		"func(or) of int8: it is for bool": func(g *ops.Group) *ops.Work {
			return g.AllReduce(ctx, f(tensor.Int8), tensor.Func("or", func(a, b bool) bool { return a || b }))
		},
		"avg is more than a fold": func(g *ops.Group) *ops.Work { return g.Run(ctx, ring, f(tensor.Float32), tensor.Avg) },
		"bor of float32: it is":   func(g *ops.Group) *ops.Work { return g.Run(ctx, ring, f(tensor.Float32), tensor.BitOr) },
	} {
		check(t, world(2, ops.Config{}, func(g *ops.Group) error {
			if err := call(g).Wait(); err == nil || !strings.HasPrefix(err.Error(), "ops: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want it to say %q", err, says)
			}
			return g.AllReduce(ctx, f(tensor.Bool), tensor.Sum).Wait()
		}))
	}
}

// A message of bools from a peer that sends other bytes makes bools of them.
func TestBoolsFromAPeer(t *testing.T) {
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		sent := tensor.In(tensor.Host{0, 1, 2, 255}, tensor.Bool, 4) // no slice of bools holds these
		if g.Rank() == 0 {
			return errors.Join(g.Send(ctx, sent, 1, 0), g.AllReduce(ctx, sent, tensor.Max).Wait())
		}
		got := make([]bool, 4)
		if err := g.Recv(ctx, tensor.Of(got), 0, 0); err != nil {
			return err
		}
		if err := same("recv", tensor.Of(got), []byte{0, 1, 1, 1}); err != nil {
			return err
		}
		sum := make([]bool, 4)
		err := g.AllReduce(ctx, tensor.Of(sum), tensor.Max).Wait()
		return errors.Join(err, same("all_reduce", tensor.Of(sum), []byte{0, 1, 1, 1}))
	}))
}
