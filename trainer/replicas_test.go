package trainer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// One, two, four and eight ranks that share out the same batches, without dropout, have
// the same parameters after 50 steps, bit for bit, and the same loss: sums over
// ranks go on in the order of those over samples, see nn/shard.go.
func TestWorldsOfAnySizeLearnTheSame(t *testing.T) {
	for _, net := range []net{{"convnet", nn.NewConvNet, 64, 50}, {"tutorial", nn.NewTutorial, 64, 50}} {
		if trainer.UnderRace { // CI takes all 50 without the detector
			net.steps = map[string]int{"convnet": 4, "tutorial": 12}[net.name]
		}
		t.Run(net.name, func(t *testing.T) {
			t.Parallel()
			var first float64
			var alone [32]byte
			for i, world := range []int{1, 2, 4, 8} {
				losses, hashes := learn(t, net, world)
				mean := 0.0
				for _, loss := range losses {
					mean += loss / float64(world)
				}
				if i == 0 {
					first, alone = mean, hashes[0]
				}
				for rank, hash := range hashes {
					if hash != alone {
						t.Errorf("%d ranks: rank %d has other parameters than one rank alone", world, rank)
					}
				}
				if math.Abs(mean-first) > 1e-4 || math.IsNaN(mean) {
					t.Errorf("%d ranks: loss %.6f, 1 rank: %.6f", world, mean, first)
				}
			}
			if start := math.Log(10); net.steps == 50 && first > start-0.1 {
				t.Errorf("after 50 steps the loss is %.4f: nothing was learnt", first)
			}
		})
	}
}

const (
	samples = 320
	pixels  = 28 * 28
)

type net struct {
	name   string
	make   func(nn.Config) (*nn.Net, error)
	global int // batch of all ranks together
	steps  int
}

// learn trains on a set with something to learn: images of noise on
// which a bar stands where the label says.
func learn(t *testing.T, net net, world int) ([]float64, [][32]byte) {
	x, y := bars()
	losses, hashes, errs := []float64{}, [][32]byte{}, []error{}
	for range world {
		losses, hashes, errs = append(losses, 0), append(hashes, [32]byte{}), append(errs, nil)
	}
	var wg sync.WaitGroup
	for r, w := range memnet.New(world) {
		g := ops.NewGroup(w, ops.Config{Deterministic: true})
		wg.Go(func() {
			var model *nn.Net
			if model, errs[r] = net.make(nn.Config{Seed: 3, NoDropout: true}); errs[r] == nil {
				losses[r], errs[r] = steps(g, model, x, y, net)
				hashes[r], _ = trainer.Hash(model.Params())
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return losses, hashes
}

func bars() (x []float32, y []uint8) {
	rng := rand.New(rand.NewPCG(5, 5))
	x, y = make([]float32, samples*pixels), make([]uint8, samples)
	for i := range y {
		y[i] = uint8(rng.IntN(10))
		for p := range pixels {
			x[i*pixels+p] = float32(rng.NormFloat64()) / 2
			if col := p % 28; col/2 == int(y[i])+1 {
				x[i*pixels+p] += 2
			}
		}
	}
	return x, y
}

// steps returns the loss of the last step.
func steps(g *ops.Group, model *nn.Net, x []float32, y []uint8, net net) (loss float64, err error) {
	ctx := context.Background()
	ddp, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{})
	if err != nil {
		return 0, err
	}
	opt, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.02, Momentum: 0.5})
	if err != nil {
		return 0, err
	}
	sampler, err := trainer.NewDistributedSampler(samples, g.Size(), g.Rank(), trainer.SamplerConfig{Shuffle: true})
	if err != nil {
		return 0, err
	}
	step := 0
	for epoch := 0; ; epoch++ {
		sampler.SetEpoch(epoch)
		for indices := range trainer.Batches(sampler.Indices(), net.global/g.Size(), true) {
			var b nn.Batch
			for _, i := range indices {
				b.X, b.Y = append(b.X, x[i*pixels:(i+1)*pixels]...), append(b.Y, y[i])
			}
			if loss, err = model.ForwardBackward(ctx, b, ddp.Ready); err != nil {
				return 0, err
			}
			if err := ddp.Wait(); err != nil {
				return 0, err
			}
			if err := opt.Step(); err != nil {
				return 0, err
			}
			if step++; step == net.steps {
				return loss, nil
			}
		}
	}
}
