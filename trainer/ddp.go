package trainer

import (
	"context"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// DDPConfig sets up a DDP. The zero value is PyTorch's. All but Hook's state is
// the same on every rank.
type DDPConfig struct {
	// FirstBucket is the size in bytes at which the first bucket is full; zero is
	// DefaultFirstBucket.
	FirstBucket int
	// Bucket is that of the others; zero is DefaultBucket.
	Bucket int
	// LastBucket, if the last bucket is larger, has the gradients in it that are ready last
	// travel as one more: up to so many bytes of them, one parameter's at least. With Update
	// they are what the next forward pass needs first, and their message is under nothing.
	// Zero is DefaultLastBucket with Update and Abreast; else nothing is cut, as in PyTorch.
	// Gradients outside host memory stay as they lie.
	LastBucket int

	// Views puts the gradients into the buckets for good, which spares copies and the
	// memory of all gradients: every Param's Grad becomes a view of its bucket, and
	// again another one after the first step. It is for models that look up Grad in
	// each step, as those of package nn do.
	Views bool
	// Synced says that all ranks have the same values already, as after Carry, so
	// that rank 0's need not be sent.
	Synced bool
	// Buffers are tensors that forward changes, such as running means. All ranks get
	// rank 0's, at first and in every Wait.
	Buffers []*Param

	// FindUnused allows parameters that take no part in the loss of a step: on ranks
	// where they do not, their gradients count as zero. See DDP.Unused.
	FindUnused bool
	// Static is FindUnused where it is the same parameters in every step. They are
	// found out in the first, and cost nothing afterwards.
	Static bool

	// Uneven lets ranks run out of batches at different times; see DDP.Join.
	Uneven Uneven
	// Hook averages buckets in place of an all-reduce; nil: that.
	Hook Hook

	// Abreast has every other bucket travel by a second group, which NewDDP makes of the
	// first: buckets keep their order of departure, but none waits for the one before it to
	// arrive. Where LastBucket counts, the last has a third. It is for links whose latency is
	// long beside what a bucket's bytes take, and costs those groups' streams for as long as
	// the world lives. Results keep their bits.
	Abreast bool

	// Update, if not nil, updates parameter i: its gradient is the average. It is called
	// once a step for each, by Need, when a model comes to use the parameter in the next
	// step, or by Wait for those that are left: so forward and what still travels are under
	// each other, and no Wait stands between two steps. See Need. Commonly there is one
	// Optimizer for each parameter, and Update has it Step.
	Update func(i int) error
}

// A DDP averages gradients over the ranks of a group while backward is still at
// work: PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed",
// VLDB 2020), for any [Model].
//
// Gradients travel in buckets. Those of a bucket are multiplied by 1/ranks, and
// then summed, as PyTorch does. Buckets are reduced in one order on every rank:
// one that is ready early waits for those before it. After the first step they are
// made anew, in the order in which rank 0's gradients became ready.
//
// All methods belong to the goroutine that computes.
type DDP struct {
	ctx    context.Context
	g      *ops.Group
	params []*Param
	c      DDPConfig

	second  *ops.Group // of odd buckets; nil: there is one group for all
	third   *ops.Group // of the last; nil: it is as the others
	inPlace bool       // gradients stay where they are
	buckets []*flight
	at      []place // of each parameter
	rebuilt bool    // the buckets are in their final order

	// Of this step:
	launched int       // buckets that are on their way
	seen     []bool    // parameters whose gradient was ready
	order    []int     // in which they were
	weight   float64   // of this rank's gradients in the average; zero: its even share
	hold     bool      // nothing is sent
	idle     bool      // this rank has no samples
	roll     *rollCall // who takes part; nil before it is asked
	err      error     // the first

	held   []tensor.Tensor // what steps that sent nothing have left, by parameter
	unused unusedSet
	joined bool
}

// NewDDP checks that every rank has the same parameters and gives all of them
// rank 0's values. Every rank of the group calls it, at the same place among the
// group's operations. ctx bounds the construction and every step after it.
//
// Gradients are float32 or float64. Those in host memory travel in buckets; others, as a
// GPU's, stay where they are, and those that lie side by side there, in the order of backward,
// travel together.
func NewDDP(ctx context.Context, g *ops.Group, params []*Param, c DDPConfig) (*DDP, error) {
	if err := c.size(); err != nil {
		return nil, err
	}
	if err := c.refuseUpdate(); err != nil {
		return nil, err
	}
	inPlace := slices.ContainsFunc(params, elsewhere)
	own := averageable(params)
	if inPlace {
		own = placeable(params, c)
	}
	if err := verify(ctx, g, append(params[:len(params):len(params)], c.Buffers...), own); err != nil {
		return nil, err
	}
	d := &DDP{ctx: ctx, g: g, params: params, c: c, inPlace: inPlace}
	if err := d.pave(); err != nil {
		return nil, err
	}
	if !c.Synced {
		if err := broadcast(ctx, g, params, 0); err != nil {
			return nil, err
		}
		if err := broadcast(ctx, g, c.Buffers, 0); err != nil {
			return nil, err
		}
	}
	d.seen, d.held = make([]bool, len(params)), make([]tensor.Tensor, len(params))
	d.unused.init(len(params))
	d.rebuilt = inPlace || c.FindUnused && !c.Static // whose order is another in every step
	d.build(lastToFirst(params))
	d.reset()
	return d, nil
}

// Weigh says what this rank's gradients count for in the step that begins, rather
// than one part in as many as there are ranks. Where batches differ in length it
// is [Share.Weight]: the weights of all ranks add up to 1. It comes before the
// first Ready.
func (d *DDP) Weigh(weight float64) { d.weight = weight }

// NoSync has the step that begins send nothing: Wait leaves in this rank's
// gradients the total of those since the last step that did send, and the next
// step that does adds them to its own. All ranks do the same. Gradients are added,
// not averaged, as torch's no_sync has it: scale the loss to average.
func (d *DDP) NoSync() { d.hold = true }

// Ready says that the gradient of parameter i is final; give it to
// Model.ForwardBackward. What goes wrong here comes out of Wait.
func (d *DDP) Ready(i int) {
	if d.flying() { // the step before, of which nobody needed all
		d.err = d.arrive()
	}
	switch {
	case d.err != nil:
		return
	case i < 0 || i >= len(d.params):
		d.err = fmt.Errorf("trainer: gradient %d is ready, there are %d parameters", i, len(d.params))
		return
	case d.seen[i]:
		d.err = fmt.Errorf("trainer: gradient of %q is ready twice in one step", d.params[i].Name)
		return
	case d.at[i].bucket < 0:
		return
	case d.absent(i):
		d.err = fmt.Errorf("trainer: gradient of %q is ready, which it was not in the first step: the graph is not static", d.params[i].Name)
		return
	}
	d.seen[i] = true
	d.order = append(d.order, i)
	if d.hold && d.inPlace {
		d.err = fmt.Errorf("trainer: NoSync needs gradients in host memory, that of %q is elsewhere", d.params[i].Name)
		return
	}
	d.addHeld(i)
	if d.hold {
		d.keep(i)
		return
	}
	d.fill(i)
}

// Idle takes this rank's part in a step for which it has no samples: its gradients
// count as zero. Wait follows.
func (d *DDP) Idle() {
	if d.flying() {
		d.err = d.arrive()
	}
	d.idle = true
	for i := len(d.params) - 1; i >= 0; i-- {
		if d.at[i].bucket >= 0 && !d.absent(i) {
			d.clear(i)
			d.Ready(i)
		}
	}
}

// fill puts a gradient into its bucket, and sends what can go.
func (d *DDP) fill(i int) {
	if !d.c.Views && !d.inPlace {
		copyElements(d.slot(i), d.params[i].Grad)
	}
	d.buckets[d.at[i].bucket].missing--
	d.launchReady()
}

// launchReady sends the buckets that are full and have none before them that is
// not.
func (d *DDP) launchReady() {
	for d.err == nil && d.launched < len(d.buckets) && d.buckets[d.launched].missing == 0 {
		d.launch(d.buckets[d.launched])
	}
	d.departed()
}

// launch begins the averaging of a bucket.
func (d *DDP) launch(b *flight) {
	weight, err := d.share()
	if err != nil {
		d.err = err
		return
	}
	d.launched++
	for _, i := range b.params {
		if d.absent(i) {
			zero(d.slot(i))
		}
	}
	if d.c.Hook != nil {
		b.work = d.hooked(b, weight)
		return
	}
	op := tensor.PremulSum(weight) // multiplies while we go on computing
	if weight == 1 && d.g.Size() == 1 {
		op = tensor.Sum // with others the op must not depend on this rank's weight
	}
	b.work = d.way(b.index).AllReduce(d.ctx, b.flat, op)
}

// Wait ends a step: when it returns nil, every rank's gradients are the average
// over all ranks, bit for bit the same. A parameter whose gradient was not ready
// is an error that names it. After an error the ranks have parted ways: give it
// to the world's End, so that the others learn it rather than wait.
func (d *DDP) Wait() error {
	if d.c.Update != nil {
		return d.arrive()
	}
	defer d.reset()
	if d.hold {
		return d.err
	}
	if d.err == nil {
		d.err = d.fillUnused()
	}
	if err := d.arrivals(d.err); err != nil {
		return err
	}
	if err := d.agreeUnused(); err != nil {
		return err
	}
	if !d.c.Views && !d.inPlace {
		for i, p := range d.params {
			if d.at[i].bucket >= 0 && !d.unused.global[i] {
				copyElements(p.Grad, d.slot(i))
			}
		}
	}
	clear(d.held)
	return d.between()
}

// between is what follows a step: the buffers, and after the first the buckets'
// final order.
func (d *DDP) between() error {
	from, err := d.source()
	if err == nil {
		err = broadcast(d.ctx, d.g, d.c.Buffers, from)
	}
	if err == nil && !d.rebuilt {
		err = d.rebuild()
	}
	return err
}

func (d *DDP) reset() {
	d.recycle()
	d.weight, d.hold, d.idle, d.roll, d.err = 0, false, false, nil, nil
}

// recycle has the buckets take gradients anew.
func (d *DDP) recycle() {
	for _, b := range d.buckets {
		b.missing, b.work, b.landed = len(b.params), nil, false
	}
	for i := range d.params {
		if d.absent(i) {
			d.buckets[d.at[i].bucket].missing--
		}
	}
	clear(d.seen)
	d.order, d.launched = d.order[:0], 0
}

// keep puts a gradient aside for the next step that sends.
func (d *DDP) keep(i int) {
	if d.held[i].Memory() == nil {
		d.held[i] = clone(d.params[i].Grad)
		return
	}
	copyElements(d.held[i], d.params[i].Grad)
}

// addHeld adds to a gradient what steps without sending have left.
func (d *DDP) addHeld(i int) {
	if d.held[i].Memory() != nil {
		add(d.params[i].Grad, d.held[i])
	}
}
