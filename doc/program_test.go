package doc

import (
	"context"
	"testing"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// program and use are the README's program, which looks at errors less often than one
// should.
//
//nolint:staticcheck,ineffassign // to be short
func program(ctx context.Context, addr string, use func(*ops.Group) error) error {
	n, err := node.Start(ctx, node.Config{Identity: "peer.key"})
	m, err := mesh.Join(ctx, n, mesh.Config{Name: "run-42", World: 4, Bootstrap: []string{addr}})
	w, err := m.World(ctx) // blocks until four peers have agreed
	g := ops.NewGroup(w, ops.Config{})
	if err = use(g); err != nil {
		return err
	}
	return m.Leave(ctx)
}

//nolint:staticcheck,ineffassign // to be short
func use(ctx context.Context, g *ops.Group, next int, model *nn.Net, batches []nn.Batch) error {
	x := []float32{1, 2, 3}
	err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait() // x is the sum over the ranks
	work := g.Isend(ctx, tensor.Of(x), next, 0)              // under way
	err = work.Wait()                                        // and x may change again

	ddp, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{})
	opt, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.01, Momentum: 0.5})
	for _, batch := range batches {
		_, err = model.ForwardBackward(ctx, batch, ddp.Ready) // gradients travel meanwhile
		err = ddp.Wait()                                      // and are the average now
		err = opt.Step()
	}
	return err
}

// worlds is the README's loop.
func worlds(ctx context.Context, n *node.Node, addr string, state *trainer.State, train func(*ops.Group) error) error {
	m, err := mesh.Join(ctx, n, mesh.Config{World: 4, Min: 2, State: "peer.key.world", Bootstrap: []string{addr}})
	if err != nil {
		return err
	}
	for {
		w, err := m.World(ctx) // this epoch, or the next: survivors, and whoever has come since
		if err != nil {
			return err
		}
		g := ops.NewGroup(w, ops.Config{})
		if err = trainer.Carry(ctx, g, state); err == nil { // newcomers get the state from those that have it
			err = train(g)
		}
		if err == nil { // else it names rank, peer and cause
			return m.Leave(ctx)
		}
	}
}

// TestProgram trains on two ranks with what the README does with a group. The rest of it
// needs four peers, and is only compiled.
func TestProgram(t *testing.T) {
	_, _ = program, worlds
	net := testnet.New(t, testnet.Config{Nodes: 2})
	batches := []nn.Batch{{X: make([]float32, nn.Side*nn.Side), Y: make([]uint8, 1)}}
	if err := net.Run(func(g *ops.Group) error {
		model, err := nn.NewTutorial(nn.Config{})
		if err != nil {
			return err
		}
		before, err := trainer.Hash(model.Params())
		if err != nil {
			return err
		}
		if err := use(t.Context(), g, 1-g.Rank(), model, batches); err != nil {
			return err
		}
		if after, err := trainer.Hash(model.Params()); err != nil || after == before {
			t.Errorf("the parameters are as before; %v", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
