package ops_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/memnet"
)

// A recut transport hands messages over in pieces of other sizes.
type recut struct{ ops.Transport }

func (r recut) Recv(ctx context.Context, from int, lane uint64, accept func(tag ops.Tag, n int64) error, land func(p []byte) error) error {
	return r.Transport.Recv(ctx, from, lane, accept, func(p []byte) error {
		for len(p) > 0 {
			k := min(16*(1+rand.IntN(200)), len(p))
			if err := land(p[:k]); err != nil {
				return err
			}
			p = p[k:]
		}
		return nil
	})
}

// A reducer is an operation whose result is bits that may depend on what it should
// not. Each returns this rank's result.
type reducer struct {
	name string
	kind ops.Kind
	run  func(g *ops.Group, x tensor.Tensor, op tensor.Op) (tensor.Tensor, error)
}

var reducers = []reducer{
	{"all_reduce", ops.KindAllReduce, func(g *ops.Group, x tensor.Tensor, op tensor.Op) (tensor.Tensor, error) {
		return x, g.AllReduce(ctx, x, op).Wait()
	}},
	{"all_reduce coalesced", ops.KindAllReduce, func(g *ops.Group, x tensor.Tensor, op tensor.Op) (tensor.Tensor, error) {
		return x, g.AllReduceCoalesced(ctx, pieces(x, []int{0, x.Len() / 3, x.Len() / 3, x.Len()}), op).Wait()
	}},
	{"reduce", ops.KindReduce, func(g *ops.Group, x tensor.Tensor, op tensor.Op) (tensor.Tensor, error) {
		err := g.Reduce(ctx, x, op, 1).Wait()
		if g.Rank() != 1 {
			x = x.Slice(0, 0)
		}
		return x, err
	}},
	{"reduce_scatter", ops.KindReduceScatter, func(g *ops.Group, x tensor.Tensor, op tensor.Op) (tensor.Tensor, error) {
		in := x.Slice(0, x.Len()/g.Size()*g.Size())
		out := tensor.New(x.DType(), in.Len()/g.Size())
		return out, g.ReduceScatter(ctx, out, in, op).Wait()
	}},
}

// transports are those of real nodes that results are compared across.
var transports = []testnet.Network{testnet.Memory, testnet.TCP, testnet.QUIC}

// A setup is everything that a result must not depend on.
type setup struct {
	config ops.Config
	nodes  testnet.Network // that real nodes are on; empty: links in memory without nodes
	recut  bool
	hidden bool // memory that lends nothing
}

func newSetup(rng *rand.Rand, kind ops.Kind, deterministic bool, id uint32) setup {
	names := append(ops.AlgorithmNames(kind), "")
	s := setup{
		config: ops.Config{ID: id, Deterministic: deterministic, Algorithm: names[rng.IntN(len(names))], Lanes: rng.IntN(ops.MaxLanes + 1)},
		recut:  rng.IntN(2) == 0, hidden: rng.IntN(4) == 0,
	}
	if rng.IntN(2) == 0 {
		s.nodes = transports[rng.IntN(len(transports))]
		s.config.Lanes = min(s.config.Lanes, 2) // lanes are streams, of which there are so many
	}
	return s
}

// The same numbers, with lanes, pieces, memories, transports and algorithms drawn at
// random, have the same bits: those of floats if the group is deterministic, those
// of integers in any case.
func TestMetamorphic(t *testing.T) {
	const n = 4
	draws := 40
	if raceDetector {
		draws = 12
	}
	nets := make(map[testnet.Network]*testnet.Net)
	for _, network := range transports {
		nets[network] = testnet.New(t, testnet.Config{Nodes: n, Network: network})
	}
	rng := rand.New(rand.NewPCG(3, 1))
	for i := range draws {
		r := reducers[rng.IntN(len(reducers))]
		deterministic := rng.IntN(3) > 0
		dtypes := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int32, tensor.Uint8}
		if !deterministic {
			dtypes = dtypes[2:]
		}
		dtype, op := dtypes[rng.IntN(len(dtypes))], reductions[rng.IntN(len(reductions))]
		size := []int{1, n, 37, 1000, 20_011}[rng.IntN(5)]
		var first [][]byte
		var firstSetup setup
		for k := range 4 {
			s := newSetup(rng, r.kind, deterministic, uint32(1+4*i+k))
			got := s.results(t, nets, n, func(g *ops.Group) (tensor.Tensor, error) {
				x := filled(dtype, size, uint64(i*n+g.Rank()), false)
				if s.hidden {
					x = hidden(x)
				}
				return r.run(g, x, op)
			})
			if first == nil {
				first, firstSetup = got, s
			}
			for rank := range got {
				if !bytes.Equal(got[rank], first[rank]) {
					t.Errorf("%s of %v × %d, %v, on rank %d: other bits with %+v than with %+v", r.name, dtype, size, op, rank, s, firstSetup)
				}
			}
		}
	}
}

// results are the bytes of what each rank ends with.
func (s setup) results(t *testing.T, nets map[testnet.Network]*testnet.Net, n int, f func(g *ops.Group) (tensor.Tensor, error)) [][]byte {
	t.Helper()
	groups, got := make([]*ops.Group, n), make([][]byte, n)
	for r, w := range memnet.New(n) {
		var transport ops.Transport = w
		if net := nets[s.nodes]; net != nil {
			transport = net.World(r)
		}
		if s.recut {
			transport = recut{transport}
		}
		groups[r] = ops.NewGroup(transport, s.config)
	}
	check(t, each(groups, func(g *ops.Group) error {
		x, err := f(g)
		if err != nil {
			return fmt.Errorf("%+v: %w", s, err)
		}
		got[g.Rank()] = bytesOf(x)
		return nil
	}))
	return got
}

// In a deterministic group the bits of an element do not depend on the size of the
// tensor that it sits in, nor on its place there.
func TestElementsAreAddedAlike(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		check(t, world(n, ops.Config{Deterministic: true}, func(g *ops.Group) error {
			one := filled(tensor.Float32, 1, uint64(g.Rank()), false)
			var want []byte
			for _, size := range []int{1, 2, 1003, 20_011} {
				for _, place := range []int{0, size / 2, size - 1} {
					x := filled(tensor.Float32, size, uint64(g.Rank()+size), false)
					if err := tensor.Copy(x.Slice(place, place+1), one); err != nil {
						return err
					}
					if err := g.AllReduce(ctx, x, tensor.Sum).Wait(); err != nil {
						return err
					}
					if got := bytesOf(x.Slice(place, place+1)); want == nil {
						want = got
					} else if !bytes.Equal(got, want) {
						return fmt.Errorf("among %d: element %d of %d has other bits than one alone", n, place, size)
					}
				}
			}
			return nil
		}))
	}
}
