package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// inMemory gives one rank its worlds, one after the other.
type inMemory struct{ worlds []*memnet.World }

type world struct{ *memnet.World }

// Newcomers would say whether a mesh has peers that wait.
func (world) Newcomers() error { return nil }

// Carried would tell the mesh that this peer has what the run has done.
func (world) Carried() {}

// Advanced would tell it that all ranks have got on.
func (world) Advanced() {}

func (m *inMemory) Next(context.Context) (trainer.World, error) {
	if len(m.worlds) == 0 {
		return nil, errors.New("no more worlds")
	}
	w := m.worlds[0]
	m.worlds = m.worlds[1:]
	return world{w}, nil
}

// fit trains in any worlds, until it dies after some step; 0: never.
func fit(worlds trainer.Worlds, diesAfter int64) (*line, trainer.Progress, error) {
	model := newLine()
	optimizer, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.5, Momentum: 0.5})
	if err != nil {
		return nil, trainer.Progress{}, err
	}
	sampler, err := trainer.NewElasticSampler(64, trainer.ElasticConfig{Shuffle: true, Batch: 4})
	if err != nil {
		return nil, trainer.Progress{}, err
	}
	state := &trainer.State{Tensors: slices.Concat(model.Params(), optimizer.State())}
	var ddp *trainer.DDP
	run := &trainer.Elastic{
		State: state, Sampler: sampler, Epochs: 30,
		Begin: func(ctx context.Context, g *ops.Group) (err error) {
			ddp, err = trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{Synced: true})
			return err
		},
		Compute: func(ctx context.Context, s trainer.Share) error {
			var batch []float64
			for _, i := range s.Indices {
				batch = append(batch, float64(i)/64)
			}
			ddp.Weigh(s.Weight())
			if len(batch) == 0 {
				ddp.Idle()
			} else if _, err := model.ForwardBackward(ctx, batch, ddp.Ready); err != nil {
				return err
			}
			return ddp.Wait()
		},
		Update: optimizer.Step,
		AfterStep: func(context.Context, *ops.Group) error {
			if state.Step == diesAfter {
				return errors.New("the plug was pulled")
			}
			return nil
		},
	}
	err = run.Run(context.Background(), worlds)
	return model, state.Progress, err
}

// Three ranks train, one dies in the third epoch, and the other two finish.
func ExampleElastic() {
	three, two := memnet.New(3), memnet.New(2)
	worlds := []*inMemory{{[]*memnet.World{three[0], two[0]}}, {[]*memnet.World{three[1]}}, {[]*memnet.World{three[2], two[1]}}}
	said := make([]string, 3)
	var ranks sync.WaitGroup
	for rank := range worlds {
		ranks.Go(func() {
			dies := int64(0)
			if rank == 1 {
				dies = 15
			}
			model, at, err := fit(worlds[rank], dies)
			said[rank] = fmt.Sprintf("y = %.2fx %+.2f after %d epochs, error: %v", model.slope[0], model.offset[0], at.Epoch, err)
		})
	}
	ranks.Wait()
	for rank, s := range said {
		fmt.Printf("rank %d: %s\n", rank, s)
	}
	// Output:
	// rank 0: y = 3.00x -1.00 after 30 epochs, error: <nil>
	// rank 1: y = 2.74x -0.88 after 2 epochs, error: the plug was pulled
	// rank 2: y = 3.00x -1.00 after 30 epochs, error: <nil>
}
