package layers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn/layers"
)

const (
	side   = 8
	global = 24 // samples of a step, of all ranks together
)

// bars are images of noise with a bright row where the label says.
func bars(n int, seed uint64) layers.Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	b := layers.Batch{X: make([]float32, n*side*side), Labels: make([]int32, n)}
	for i := range b.X {
		b.X[i] = float32(r.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = int32(r.IntN(4))
		row := b.X[(i*side+2*int(b.Labels[i]))*side:][:side]
		for j := range row {
			row[j] += 2
		}
	}
	return b
}

// share is a rank's part of a batch.
func share(b layers.Batch, rank, ranks int) layers.Batch {
	n := len(b.Labels)
	lo, hi := n*rank/ranks, n*(rank+1)/ranks
	return layers.Batch{X: b.X[lo*side*side : hi*side*side], Labels: b.Labels[lo:hi]}
}

func smallResNet() (*layers.Net, error) {
	l, err := layers.NewResNet(layers.ResNetConfig{Width: 4, Stages: 2, Classes: 4})
	if err != nil {
		return nil, err
	}
	return layers.New(layers.Config{Seed: 4, Threads: 2}, layers.Shape{1, side, side}, l, &layers.CrossEntropy{})
}

// A lesson is what ranks train a network with.
type lesson struct {
	lengths []int // samples of each step, of all ranks together
	weigh   bool  // gradients by samples
	views   bool
}

// even are steps that are equally long.
func even(steps int, views bool) lesson {
	return lesson{lengths: slices.Repeat([]int{global}, steps), views: views}
}

// learn trains one rank's network, with batch norms that are synchronised, and returns the
// loss of the last step.
func learn(ctx context.Context, g *ops.Group, net *layers.Net, of lesson) (float64, error) {
	own, err := g.Split(ctx, g.Ranks())
	if err != nil {
		return 0, err
	}
	net.Synchronize(own)
	ddp, err := trainer.NewDDP(ctx, g, net.Params(), trainer.DDPConfig{Views: of.views, Buffers: net.Buffers(), FirstBucket: 256, Bucket: 1024})
	if err != nil {
		return 0, err
	}
	sgd, err := trainer.NewSGD(net.Params(), trainer.SGDConfig{LR: 0.05, Momentum: 0.9})
	if err != nil {
		return 0, err
	}
	var loss float64
	for step, n := range of.lengths {
		b := share(bars(n, uint64(step)), g.Rank(), g.Size())
		if of.weigh {
			weight := float64(len(b.Labels)) / float64(n)
			ddp.Weigh(weight)
			net.Weigh(weight)
		}
		if loss, err = net.ForwardBackward(ctx, b, ddp.Ready); err != nil {
			return 0, err
		}
		if err := errors.Join(ddp.Wait(), sgd.Step()); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

// world trains so many ranks and returns their networks.
func world(t *testing.T, ranks int, of lesson) ([]*layers.Net, float64) {
	t.Helper()
	nets, losses, errs := make([]*layers.Net, ranks), make([]float64, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for r, w := range memnet.New(ranks) {
		wg.Go(func() {
			if nets[r], errs[r] = smallResNet(); errs[r] == nil {
				losses[r], errs[r] = learn(t.Context(), ops.NewGroup(w, ops.Config{}), nets[r], of)
			}
			if errs[r] != nil {
				w.End(errs[r])
			}
		})
	}
	wg.Wait()
	mean := 0.0
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		mean += losses[r] / float64(ranks)
	}
	return nets, mean
}

// A network of synchronised batch norms, trained on 1, 2, 3 and 4 ranks, is the one
// that a single process trains on the whole batches: parameters and running
// statistics to 1e-5. All ranks of a world have the same bits.
func TestRanksLearnAsOne(t *testing.T) {
	const steps = 6
	nets, loss := world(t, 1, even(steps, false))
	alone := nets[0]
	for _, ranks := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			nets, mean := world(t, ranks, even(steps, ranks != 3))
			if math.Abs(mean-loss) > 1e-5 {
				t.Errorf("loss %v, alone %v", mean, loss)
			}
			first, err := trainer.Hash(append(nets[0].Params(), nets[0].Buffers()...))
			if err != nil {
				t.Fatal(err)
			}
			for r, n := range nets {
				hash, err := trainer.Hash(append(n.Params(), n.Buffers()...))
				if err != nil || hash != first {
					t.Errorf("rank %d is not rank 0; %v", r, err)
				}
			}
			same(t, alone.Params(), nets[0].Params())
			same(t, alone.Buffers(), nets[0].Buffers())
		})
	}
}

func same(t *testing.T, want, got []*trainer.Param) {
	t.Helper()
	for i, p := range want {
		v, ok := tensor.Data[float32](p.Value)
		w, _ := tensor.Data[float32](got[i].Value)
		if !ok { // a count of batches
			continue
		}
		for j := range v {
			if math.Abs(float64(v[j]-w[j])) > 1e-5 {
				t.Errorf("%s[%d] = %v, alone %v", p.Name, j, w[j], v[j])
				return
			}
		}
	}
}

// Without Synchronize each rank normalises for itself, which is another network.
func TestUnsynchronizedDiffers(t *testing.T) {
	b := bars(global, 1)
	whole, half := must(smallResNet()), must(smallResNet())
	if _, err := whole.ForwardBackward(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := half.ForwardBackward(t.Context(), share(b, 0, 2), nil); err != nil {
		t.Fatal(err)
	}
	v, _ := tensor.Data[float32](whole.Buffers()[0].Value)
	w, _ := tensor.Data[float32](half.Buffers()[0].Value)
	if v[0] == w[0] {
		t.Error("half of a batch has the statistics of all of it")
	}
}

// When a rank does not come, the others' step ends with the reason.
func TestSynchronizeFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := memnet.New(2)
	net := must(smallResNet())
	net.Synchronize(ops.NewGroup(w[0], ops.Config{}))
	ready := make(chan error, 1)
	go func() {
		_, err := net.ForwardBackward(ctx, bars(4, 1), nil)
		ready <- err
	}()
	cancel()
	if err := <-ready; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "layers: ") {
		t.Errorf("got %v", err)
	}
}

// The network learns: after some steps it knows the labels of images that it has
// not seen.
func TestResNetLearns(t *testing.T) {
	nets, _ := world(t, 1, even(60, false))
	s, err := nets[0].Evaluate(t.Context(), bars(200, 1000))
	if err != nil {
		t.Fatal(err)
	}
	if s.Accuracy() < 0.9 {
		t.Errorf("%d of %d right", s.Right, s.Count)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
