package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A net is a small model: two layers with tanh between, under a squared error, and
// a third that only some samples reach.
type net[T real] struct {
	params  []*Param
	mean    []T // a buffer: of the inputs so far
	factor  T   // of the loss
	special bool
}

const netIn, netHidden = 5, 7

func newNet[T real](seed uint64) *net[T] {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := &net[T]{factor: 1, mean: make([]T, 1)}
	for _, p := range []struct {
		name string
		size int
	}{{"w1", netIn * netHidden}, {"b1", netHidden}, {"w2", netHidden}, {"b2", 1}, {"special", 3}} {
		x := tensor.New(dtypeFor[T](), p.size)
		for i := range p.size {
			data[T](x)[i] = T(rng.NormFloat64() / 2)
		}
		n.params = append(n.params, &Param{Name: p.name, Value: x, Grad: tensor.New(dtypeFor[T](), p.size)})
	}
	return n
}

func dtypeFor[T real]() tensor.DType { return tensor.Of([]T{}).DType() }

func (n *net[T]) value(i int) []T { return data[T](n.params[i].Value) }
func (n *net[T]) grad(i int) []T  { return data[T](n.params[i].Grad) }

// sample is the i-th input and its truth.
func sample[T real](i int) (x [netIn]T, y T) {
	rng := rand.New(rand.NewPCG(uint64(i), 99))
	for k := range x {
		x[k] = T(rng.NormFloat64())
		y += x[k] * T(k) / 4
	}
	return x, T(math.Sin(float64(y)))
}

// learn is ForwardBackward of samples by index.
func (n *net[T]) learn(indices []int, ready func(int)) {
	for i := range n.params {
		clear(n.grad(i))
	}
	for _, i := range indices {
		x, y := sample[T](i)
		n.mean[0] = n.mean[0]*0.9 + x[0]
		var h [netHidden]T
		out := n.value(3)[0]
		for j := range h {
			s := n.value(1)[j]
			for k, v := range x {
				s += v * n.value(0)[j*netIn+k]
			}
			h[j] = T(math.Tanh(float64(s)))
			out += h[j] * n.value(2)[j]
		}
		d := 2 * (out - y) * n.factor / T(len(indices))
		n.grad(3)[0] += d
		for j := range h {
			n.grad(2)[j] += d * h[j]
			e := d * n.value(2)[j] * (1 - h[j]*h[j])
			n.grad(1)[j] += e
			for k, v := range x {
				n.grad(0)[j*netIn+k] += e * v
			}
		}
	}
	if n.special {
		n.grad(4)[1] = n.value(4)[1] * n.factor
		ready(4)
	}
	for _, i := range []int{3, 1, 2, 0} { // not the order of registration
		ready(i)
	}
}

// distance is the largest difference of two models' parameters.
func (n *net[T]) distance(m *net[T]) float64 {
	d := 0.0
	for i := range n.params {
		for k, v := range n.value(i) {
			d = max(d, math.Abs(float64(v-m.value(i)[k])))
		}
	}
	return d
}

// A mode is a way to train that is to give what one process gives.
type mode struct {
	name string
	ddp  DDPConfig
	// micro is in how many parts a rank takes its batch.
	micro int
	// batch is what all ranks take together.
	batch int
	used  bool // the special parameter takes part
}

var modes = []mode{
	{name: "buckets", batch: 12, micro: 1, used: true},
	{name: "a bucket each", batch: 12, micro: 1, used: true, ddp: DDPConfig{FirstBucket: 1, Bucket: 1}},
	{name: "abreast", batch: 12, micro: 1, used: true, ddp: DDPConfig{FirstBucket: 1, Bucket: 1, Abreast: true}},
	{name: "the last bucket apart", batch: 12, micro: 1, used: true, ddp: DDPConfig{FirstBucket: 1, LastBucket: 1, Abreast: true}},
	{name: "unused found abreast", batch: 12, micro: 1, ddp: DDPConfig{FindUnused: true, Views: true, FirstBucket: 1, Bucket: 1, Abreast: true}},
	{name: "views", batch: 12, micro: 1, used: true, ddp: DDPConfig{Views: true}},
	{name: "views of small buckets", batch: 12, micro: 1, used: true, ddp: DDPConfig{Views: true, FirstBucket: 40, Bucket: 60}},
	{name: "accumulation", batch: 24, micro: 2, used: true},
	{name: "accumulation in views", batch: 24, micro: 2, used: true, ddp: DDPConfig{Views: true, Bucket: 1}},
	{name: "fewer samples than ranks", batch: 3, micro: 1, used: true},
	{name: "uneven batches", batch: 7, micro: 1, used: true, ddp: DDPConfig{Views: true}},
	{name: "unused found", batch: 12, micro: 1, ddp: DDPConfig{FindUnused: true, FirstBucket: 1, Bucket: 1}},
	{name: "unused found in views", batch: 12, micro: 1, ddp: DDPConfig{FindUnused: true, Views: true}},
	{name: "static", batch: 12, micro: 1, ddp: DDPConfig{Static: true, FirstBucket: 30, Bucket: 30}},
	{name: "static in views", batch: 2, micro: 1, ddp: DDPConfig{Static: true, Views: true, FirstBucket: 30, Bucket: 30}},
}

// trainNet takes steps, alone without a DDP where g is nil, and calls after each.
func trainNet[T real](g *ops.Group, m mode, steps int, after func(step int, n *net[T]) error) (*net[T], error) {
	rank, size := 0, 1
	n := newNet[T](1)
	var d *DDP
	if g != nil {
		rank, size = g.Rank(), g.Size()
		n = newNet[T](uint64(1 + rank)) // rank 0's count
		var err error
		if d, err = NewDDP(context.Background(), g, n.params, m.ddp); err != nil {
			return nil, err
		}
	}
	n.special = m.used
	opt, err := NewAdam(n.params, AdamConfig{LR: 0.01})
	if err != nil {
		return nil, err
	}
	sampler, err := NewElasticSampler(1000*m.batch, ElasticConfig{Shuffle: true, Global: m.batch})
	if err != nil {
		return nil, err
	}
	for step := range steps {
		s, _ := sampler.Deal(Progress{Consumed: int64(step * m.batch)}, rank, size)
		if d == nil {
			n.learn(s.Indices, func(int) {})
		} else if err := n.share(d, m, s); err != nil {
			return nil, err
		}
		if err := opt.Step(); err != nil {
			return nil, err
		}
		if err := after(step, n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// parts takes a rank's part in a step, in as many parts as the mode has.
func (n *net[T]) parts(d *DDP, m mode, s Share, take func(part []int, last bool) error) error {
	n.factor = 1 / T(m.micro)
	for k := range m.micro {
		last := k == m.micro-1
		if last {
			d.Weigh(s.Weight())
		} else {
			d.NoSync()
		}
		if err := take(s.Indices[k*len(s.Indices)/m.micro:(k+1)*len(s.Indices)/m.micro], last); err != nil {
			return err
		}
	}
	return nil
}

// share waits after each of them.
func (n *net[T]) share(d *DDP, m mode, s Share) error {
	return n.parts(d, m, s, func(part []int, _ bool) error {
		if len(part) == 0 {
			d.Idle()
		} else {
			n.learn(part, d.Ready)
		}
		return d.Wait()
	})
}

// Any number of ranks gives what one process gives, in any mode, and all ranks
// have the same bits after every step.
func TestEquivalence(t *testing.T) {
	for _, m := range modes {
		equivalent[float32](t, m, 1e-5)
		equivalent[float64](t, m, 1e-12)
	}
}

func equivalent[T real](t *testing.T, m mode, tolerance float64) {
	t.Helper()
	steps := 100
	if UnderRace {
		steps = 10
	}
	alone, err := trainNet(nil, m, steps, func(int, *net[T]) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if start := newNet[T](1); alone.distance(start) < 0.01 {
		t.Fatalf("%s: nothing was learnt", m.name)
	}
	for size := 1; size <= 4; size++ {
		nets, errs := make([]*net[T], size), make([]error, size)
		hashes := make([][][32]byte, size)
		errs = each(memnet.New(size), func(rank int, w *memnet.World) error {
			var err error
			nets[rank], err = trainNet(ops.NewGroup(w, ops.Config{}), m, steps, func(_ int, n *net[T]) error {
				h, err := Hash(n.params)
				hashes[rank] = append(hashes[rank], h)
				return err
			})
			if err != nil {
				w.End(err)
			}
			return err
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s, %d ranks: %v", m.name, size, err)
		}
		for rank, n := range nets {
			for step, h := range hashes[rank] {
				if h != hashes[0][step] {
					t.Fatalf("%s, %d ranks: rank %d has other bits than rank 0 after step %d", m.name, size, rank, step)
				}
			}
			if d := n.distance(alone); d > tolerance || math.IsNaN(d) {
				t.Errorf("%s, %d ranks of %T: rank %d is %g off", m.name, size, n.mean, rank, d)
			}
		}
	}
}

// Ranks with 3, 5 and 4 batches: a rank without one counts as zero, under either
// divisor, and all ranks stay alike, buffers too.
func TestJoin(t *testing.T) {
	for _, uneven := range []Uneven{DivideByAll, DivideByActive} {
		for _, views := range []bool{false, true} {
			batches := []int{3, 5, 4}
			want := joined(t, uneven, batches)
			nets := make([]*net[float64], len(batches))
			errs := each(memnet.New(len(batches)), func(rank int, w *memnet.World) error {
				n := newNet[float64](1)
				n.special = true
				nets[rank] = n
				c := DDPConfig{Uneven: uneven, Views: views, FirstBucket: 1, Bucket: 1,
					Buffers: []*Param{{Name: "mean", Value: tensor.Of(n.mean)}}}
				d, err := NewDDP(context.Background(), ops.NewGroup(w, ops.Config{}), n.params, c)
				if err != nil {
					return err
				}
				opt, err := NewSGD(n.params, SGDConfig{LR: 0.1, Momentum: 0.5})
				if err != nil {
					return err
				}
				for k := range batches[rank] {
					n.learn([]int{10*rank + k}, d.Ready)
					if err := errors.Join(d.Wait(), opt.Step()); err != nil {
						return err
					}
				}
				return d.Join(opt.Step)
			})
			noErrors(t, errs)
			for rank, n := range nets {
				if d := n.distance(want); d > 1e-14 {
					t.Errorf("divisor %d: rank %d is %g off", uneven, rank, d)
				}
				if n.mean[0] != nets[0].mean[0] || n.mean[0] == 0 {
					t.Errorf("divisor %d: rank %d has the buffer %v, rank 0 %v", uneven, rank, n.mean, nets[0].mean)
				}
			}
		}
	}
}

// joined is what one process makes of the batches of several.
func joined(t *testing.T, uneven Uneven, batches []int) *net[float64] {
	n := newNet[float64](1)
	n.special = true
	opt, err := NewSGD(n.params, SGDConfig{LR: 0.1, Momentum: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 5 {
		total := make([][]float64, len(n.params))
		active := 0
		for rank, b := range batches {
			if k >= b {
				continue
			}
			active++
			n.learn([]int{10*rank + k}, func(int) {})
			for i := range total {
				total[i] = append(total[i][:0:0], total[i]...)
				if len(total[i]) == 0 {
					total[i] = make([]float64, len(n.grad(i)))
				}
				addTo(total[i], n.grad(i))
			}
		}
		if uneven == DivideByAll {
			active = len(batches)
		}
		for i := range total {
			for j, v := range total[i] {
				n.grad(i)[j] = v / float64(active)
			}
		}
		if err := opt.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestJoinNeedsIt(t *testing.T) {
	d := &DDP{}
	if err := d.Join(nil); err == nil {
		t.Error(fmt.Errorf("joined where all are even"))
	}
}
