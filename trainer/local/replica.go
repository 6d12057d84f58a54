package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A Replica is this rank's copy of a model, which it trains on its own, and its ties to
// those of the other ranks. Beside the parameters it has the anchor: what all ranks had
// in common when they last came together, the same bits on each.
//
// All methods belong to the goroutine that trains.
type Replica struct {
	p       plan
	params  []*trainer.Param // in host memory: the model's, or copies of them
	far     []*trainer.Param // the model's, where the host cannot address some; nil: it can
	anchors []*trainer.Param
	momenta []*trainer.Param // of the outer steps; nil without
	counter []int64          // steps that count; of those, when all came together beside the rounds; moves of the anchor
	parts   []*part

	ctx   context.Context
	g     *ops.Group // of this Replica alone, so that nothing else waits behind it
	begun bool
	at    int64 // the moves of the anchor that this rank has made, or begun after
	all   bool  // the exchange under way is of all parts at once
}

// New takes a method and a model as it is, float32 or float64. It keeps a copy for the
// anchor, a buffer as large for what travels, another with momentum or with pairs, and two
// with a codec. Of a model that is not in host memory, such as a GPU's, it keeps one more,
// and copies it there and back when ranks come together; the steps between cost nothing.
// [Replica.Begin] comes before the first step.
func New(m Method, params []*trainer.Param) (*Replica, error) {
	if m == nil {
		return nil, errors.New("local: no method")
	}
	p, err := m.plan()
	if err != nil {
		return nil, err
	}
	if p.codec != nil {
		if n, size := p.codec.Block(); n < 1 || size < 1 {
			return nil, fmt.Errorf("local: codec %s makes %d bytes of %d elements", p.codec.Name(), size, n)
		}
	}
	r := &Replica{p: p, params: params, counter: make([]int64, 3)}
	if r.anchors, err = copyOf(params); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(params, func(q *trainer.Param) bool { return !addressable(q.Value) }) {
		r.far = params
		if r.params, err = copyOf(params); err != nil {
			return nil, err
		}
	}
	if p.momentum != 0 {
		for _, q := range params {
			m := tensor.New(q.Value.DType(), q.Value.Shape()...)
			r.momenta = append(r.momenta, &trainer.Param{Name: q.Name + ".outer_momentum", Value: m})
		}
	}
	r.parts = cut(params, p)
	return r, nil
}

// State is what all ranks have alike after every step, for the Tensors of a
// trainer.State in place of the model's parameters: the anchor, under the parameters' own
// names, the momentum of outer steps, and the counter of steps.
func (r *Replica) State() []*trainer.Param {
	all := append(r.anchors[:len(r.anchors):len(r.anchors)], r.momenta...)
	return append(all, &trainer.Param{Name: "local.steps", Value: tensor.Of(r.counter)})
}

// Warm reports whether the next step is one in which gradients are averaged, as those of
// a PostLocalSGD's warm-up are. That is the caller's, with a trainer.DDP.
func (r *Replica) Warm() bool { return r.counter[0] < r.p.warmup }

// Due reports whether the next step sends something, or begins to, to other ranks.
func (r *Replica) Due() bool {
	if r.Warm() {
		return true
	}
	return slices.ContainsFunc(r.parts, func(c *part) bool { return r.turn(c, r.counter[0]+1) })
}

// Settled reports whether all ranks have one model: no step has come since the last
// Finish, or the last Settle that was committed. It is the same on all ranks.
func (r *Replica) Settled() bool { return r.counter[1] == r.counter[0] }

// Step is what comes after each step of the optimiser: Exchange and Commit.
func (r *Replica) Step() error { return r.follow(r.Exchange()) }

// Finish brings all ranks to one model, at the end of training or for a look at it on the
// way: Settle and Commit. It counts as a step, and a round begins with it.
func (r *Replica) Finish() error { return r.follow(r.Settle()) }

func (r *Replica) follow(err error) error {
	if err == nil {
		err = r.Commit()
	}
	return err
}

// Exchange does the communication that the step is due, or begins it if it may be late.
// It changes neither the parameters nor the State; Commit does. All ranks call it after
// every step. An error ends the round for all: give it to the world's End.
func (r *Replica) Exchange() error {
	if r.g == nil {
		return errors.New("local: a step before Begin")
	}
	step := r.counter[0] + 1
	r.all = false
	if step <= r.p.warmup {
		return nil
	}
	if slices.ContainsFunc(r.parts, func(c *part) bool { return c.due == step || r.turn(c, step) }) {
		if err := r.fetch(); err != nil {
			return err
		}
	}
	for _, c := range r.parts {
		if !r.turn(c, step) {
			continue
		}
		c.due = step + r.p.delay
		if r.p.pairs {
			r.meet(c, step)
		} else {
			r.launch(c, 1/float64(r.g.Size()))
		}
		c.landed = false
	}
	return r.arrivals(func(c *part) bool { return c.due == step })
}

// arrivals waits for parts that are under way.
func (r *Replica) arrivals(due func(c *part) bool) error {
	var err error
	for _, c := range r.parts {
		if due(c) {
			err = errors.Join(err, r.wait(c))
			c.landed = err == nil
		}
	}
	return err
}

// Settle is Exchange for a step after which all ranks have one model, whatever the
// method: all parts at once, nothing late and nothing kept. What was under way is done
// again with it.
func (r *Replica) Settle() error {
	if r.g == nil {
		return errors.New("local: a step before Begin")
	}
	var err error
	for _, c := range r.parts {
		err = errors.Join(err, r.drop(c))
	}
	if err := errors.Join(err, r.fetch()); err != nil {
		return err
	}
	r.all = true
	for _, c := range r.parts {
		r.launch(c, 1/float64(r.g.Size()))
	}
	return r.arrivals(func(*part) bool { return true })
}

// Rewind has the model be what the State says, without what it has learnt since: for who
// has loaded a State, or got by trainer.Carry that of a run which has ended.
func (r *Replica) Rewind() error {
	if err := transfer(r.params, r.anchors); err != nil {
		return err
	}
	return r.give()
}

// fetch has the copies be the model, where that is elsewhere.
func (r *Replica) fetch() error { return transfer(r.params, r.far) }

// give is its reverse.
func (r *Replica) give() error {
	if r.far == nil {
		return nil
	}
	return transfer(r.far, r.params)
}

// Commit has a step count whose Exchange or Settle has succeeded: it moves the anchor,
// and the parameters with it. It sends nothing.
func (r *Replica) Commit() error {
	r.counter[0]++
	keep := r.p.keep
	if r.all {
		keep, r.counter[1] = 0, r.counter[0]
	}
	moved := false
	for _, c := range r.parts {
		moved = moved || c.landed
		switch {
		case !c.landed:
			continue
		case c.pair:
			r.join(c)
		default:
			r.land(c, keep)
			r.counter[2]++
		}
		c.landed = false
	}
	r.at = r.counter[2]
	if r.counter[0] <= r.p.warmup && !r.all {
		return errors.Join(r.fetch(), transfer(r.anchors, r.params))
	}
	if moved {
		return r.give()
	}
	return nil
}
