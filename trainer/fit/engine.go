package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/internal/finite"
)

// An engine is how gradients become a step: averaged by a DDP for an optimiser that
// every rank has, or shared out by a ZeRO.
type engine interface {
	// begin is a new world's, before the first step in it.
	begin(ctx context.Context, g *ops.Group) error
	// optimizer is there after the first begin.
	optimizer() trainer.Optimizer
	// state is the optimiser's as it would be without sharing. All ranks ask at once.
	state() ([]*trainer.Param, error)
	// load takes what state has given, or what a checkpoint has written into it.
	load(state []*trainer.Param) error

	Weigh(weight float64)
	NoSync()
	Ready(i int)
	Idle()
	Err() error
	Wait() error
	// spare has the update leave out parameters that no rank used in the step, until restore.
	spare() (restore func())

	// norm is that of all averaged gradients, clip limits it, finite is what a Scaler looks at
	// to say whether they are numbers, and unsound the first parameter, as an index, that
	// keeps them from it; past the last: all are.
	norm(ctx context.Context) (float64, error)
	clip(ctx context.Context, most float64) error
	finite(ctx context.Context) ([]*trainer.Param, error)
	unsound(ctx context.Context) (int, error)
}

// replicated has the whole optimiser on every rank.
type replicated struct {
	*trainer.DDP
	opt    trainer.Optimizer
	params []*trainer.Param
	config trainer.DDPConfig
}

func (e *replicated) begin(ctx context.Context, g *ops.Group) (err error) {
	e.DDP, err = trainer.NewDDP(ctx, g, e.params, e.config)
	return err
}

func (e *replicated) optimizer() trainer.Optimizer          { return e.opt }
func (e *replicated) state() ([]*trainer.Param, error)      { return e.opt.State(), nil }
func (e *replicated) load([]*trainer.Param) error           { return nil } // state shares the tensors
func (e *replicated) norm(context.Context) (float64, error) { return math.Sqrt(squares(e.params)), nil }

// spare takes the gradients away, which are an earlier step's. An optimiser then leaves such
// a parameter and what it remembers of it alone, as PyTorch's do.
func (e *replicated) spare() (restore func()) {
	unused := e.DDP.Unused()
	grads := make([]tensor.Tensor, len(unused))
	for k, i := range unused {
		grads[k], e.params[i].Grad = e.params[i].Grad, tensor.Tensor{}
	}
	return func() {
		for k, i := range unused {
			e.params[i].Grad = grads[k]
		}
	}
}

func (e *replicated) clip(_ context.Context, most float64) error {
	_, err := trainer.ClipGradNorm(e.params, most)
	return err
}

func (e *replicated) finite(context.Context) ([]*trainer.Param, error) { return e.params, nil }
func (e *replicated) unsound(context.Context) (int, error)             { return unsound(e.params), nil }

// staged is ZeRO's stage 1: averaged by a DDP, and then updated in shares.
type staged struct {
	replicated
	zero  *trainer.ZeRO
	z     trainer.ZeROConfig
	build func(share []*trainer.Param) (trainer.Optimizer, error)
}

func (e *staged) begin(ctx context.Context, g *ops.Group) (err error) {
	if err = e.replicated.begin(ctx, g); err == nil {
		e.zero, err = trainer.NewZeRO(ctx, g, e.params, e.z, e.build)
		e.opt = e.zero
	}
	return err
}

// spare makes zeros of the gradients: those of a share cannot be taken away.
func (e *staged) spare() (restore func()) {
	for _, i := range e.DDP.Unused() {
		zero(e.params[i].Grad)
	}
	return func() {}
}

func (e *staged) state() ([]*trainer.Param, error) { return e.zero.FullState() }
func (e *staged) load(full []*trainer.Param) error { return e.zero.LoadFullState(full) }

// sharded is ZeRO's stage 2: a rank has the averages of its share alone.
type sharded struct {
	*trainer.ZeRO
	g      *ops.Group
	params []*trainer.Param
	z      trainer.ZeROConfig
	build  func(share []*trainer.Param) (trainer.Optimizer, error)

	ctx     context.Context  // the world's
	buffers []*trainer.Param // that all ranks get rank 0's of, as a DDP has it
	share   []*trainer.Param
	hold    bool            // the batch at hand sends nothing
	held    []tensor.Tensor // what such batches have left, by parameter
	some    bool            // there is something in held
}

func (e *sharded) begin(ctx context.Context, g *ops.Group) (err error) {
	e.ctx, e.g = ctx, g
	e.ZeRO, err = trainer.NewZeRO(ctx, g, e.params, e.z, func(share []*trainer.Param) (trainer.Optimizer, error) {
		e.share = share
		return e.build(share)
	})
	return err
}

func (e *sharded) optimizer() trainer.Optimizer     { return e.ZeRO }
func (e *sharded) state() ([]*trainer.Param, error) { return e.FullState() }
func (e *sharded) load(full []*trainer.Param) error { return e.LoadFullState(full) }
func (e *sharded) spare() (restore func())          { return func() {} } // all take part
func (e *sharded) NoSync()                          { e.hold = true }

// Ready adds what has been held, and holds or sends the sum.
func (e *sharded) Ready(i int) {
	if i < 0 || i >= len(e.params) {
		e.ZeRO.Ready(i) // which knows what is wrong
		return
	}
	p := e.params[i]
	if e.some && e.held[i].Memory() != nil {
		add(p.Grad, e.held[i])
	}
	if !e.hold {
		e.ZeRO.Ready(i)
		return
	}
	if e.held == nil {
		e.held = make([]tensor.Tensor, len(e.params))
	}
	if e.held[i].Memory() == nil {
		e.held[i] = tensor.New(p.Grad.DType(), p.Grad.Len())
	}
	zero(e.held[i])
	add(e.held[i], p.Grad)
}

// Idle is a batch without samples, with which goes what has been held.
func (e *sharded) Idle() {
	for i := len(e.params) - 1; i >= 0; i-- {
		zero(e.params[i].Grad)
		e.Ready(i)
	}
}

func (e *sharded) Wait() error {
	if e.hold {
		e.hold, e.some = false, true
		return nil
	}
	if e.some {
		for _, h := range e.held {
			zero(h)
		}
		e.some = false
	}
	if err := e.ZeRO.Wait(); err != nil {
		return err
	}
	for _, b := range e.buffers {
		if err := e.g.Broadcast(e.ctx, b.Value, 0).Wait(); err != nil {
			return fmt.Errorf("fit: buffer %q: %w", b.Name, err)
		}
	}
	return nil
}

func (e *sharded) norm(ctx context.Context) (float64, error) {
	sum := []float64{squares(e.share)}
	if err := e.g.AllReduce(ctx, tensor.Of(sum), tensor.Sum).Wait(); err != nil {
		return 0, fmt.Errorf("fit: the norm of all gradients: %w", err)
	}
	return math.Sqrt(sum[0]), nil
}

// clip is [trainer.ClipGradNorm] over all ranks' shares.
func (e *sharded) clip(ctx context.Context, most float64) error {
	norm, err := e.norm(ctx)
	if err != nil {
		return err
	}
	if !finite.Number(norm) {
		i, err := e.unsound(ctx)
		if err != nil {
			return err
		}
		return &trainer.NormError{Norm: norm, Param: nameOf(e.params, i)}
	}
	if factor := most / (norm + 1e-6); factor < 1 {
		for _, p := range e.share {
			scale(p.Grad, factor)
		}
	}
	return nil
}

// finite is the share, and one parameter more that stands for all others' shares: its
// gradient is not a number if one of theirs is not.
func (e *sharded) finite(ctx context.Context) ([]*trainer.Param, error) {
	witness := []float64{0}
	if unsound(e.share) < len(e.share) {
		witness[0] = math.NaN()
	}
	if err := e.g.AllReduce(ctx, tensor.Of(witness), tensor.Sum).Wait(); err != nil {
		return nil, fmt.Errorf("fit: whether all gradients are finite: %w", err)
	}
	p := &trainer.Param{Name: "fit.witness", Value: tensor.New(tensor.Float64, 1), Grad: tensor.Of(witness)}
	return append(slices.Clip(e.share), p), nil
}

// unsound has an index in the share be one in params: there is a piece of each.
func (e *sharded) unsound(ctx context.Context) (int, error) {
	first := []int64{int64(unsound(e.share))}
	if err := e.g.AllReduce(ctx, tensor.Of(first), tensor.Min).Wait(); err != nil {
		return 0, fmt.Errorf("fit: which gradient is not finite: %w", err)
	}
	return int(first[0]), nil
}

// zero clears floats in host memory.
func zero(x tensor.Tensor) {
	if x.Memory() != nil {
		single, _ := tensor.Data[float32](x)
		clear(single)
		double, _ := tensor.Data[float64](x)
		clear(double)
	}
}
