package ops

import (
	"context"
	"errors"

	"peermesh/ops/tensor"
)

// A parcel is a collective of objects: one call in two steps. First every rank learns
// the sizes; then, if all are in bounds, the bytes move by a schedule that the sizes
// choose. So nothing is allocated that is too large, ranks judge alike, and no other
// call can come between the steps.
type parcel struct {
	g    *Group
	kind Kind
	root int // in the group; noRoot
	mine [][]byte
	own  error // why mine is none

	sizes []int64 // of the objects, the same on every rank
	got   []encoding
	err   error // that all ranks agree on
}

// parcels has the encodings of a rank, which encode makes, moved to where they
// belong, and returns those that are for this rank.
func (g *Group) parcels(ctx context.Context, k Kind, root int, encode func(root bool) ([][]byte, error)) ([]encoding, error) {
	if g.Rank() < 0 {
		return nil, nil
	}
	p := &parcel{g: g, kind: k, root: noRoot}
	if root != noRoot {
		i, ok := g.member(root)
		if !ok {
			return nil, g.stranger(k, "root", root)
		}
		p.root = i
	}
	p.mine, p.own = encode(g.Rank() == p.root)
	w := p.issue(ctx)
	if err := w.Wait(); err != nil {
		return nil, err
	}
	return p.got, p.err
}

// fromRoot reports whether objects are the root's, or else one of each rank.
func (p *parcel) fromRoot() bool {
	return p.kind == KindBroadcastObject || p.kind == KindScatterObject
}

// sender is the rank whose object i is.
func (p *parcel) sender(i int) int {
	if p.fromRoot() {
		return p.root
	}
	return i
}

// parcelSteps are the operations that the two steps of each are.
var parcelSteps = map[Kind]struct{ sizes, bytes Kind }{
	KindBroadcastObject: {KindBroadcast, KindBroadcast},
	KindScatterObject:   {KindBroadcast, KindScatter},
	KindGatherObject:    {KindAllGather, KindGather},
	KindAllGatherObject: {KindAllGather, KindAllGather},
}

func (p *parcel) issue(ctx context.Context) *Work {
	objects := p.g.Size()
	if p.kind == KindBroadcastObject {
		objects = 1
	}
	p.sizes = make([]int64, objects)
	first, err := p.g.plans.choose(parcelSteps[p.kind].sizes, p.root, 8*int64(objects))
	if err != nil {
		return failed(err)
	}
	t := p.g.task(p.kind, first, tensor.Of(p.sizes), tensor.Op{}, p.root)
	t.run.call.Count = 0
	// Ranks that judge by different limits would part ways after the first step.
	t.run.call.Digest ^= uint32(p.g.c.MaxObject) * 2654435761 // Knuth's, to spread the bits
	t.body = func(do func() error) error {
		var bad *badCall
		if errors.As(p.own, &bad) {
			return bad
		}
		p.announce()
		if err := do(); err != nil {
			return err
		}
		if p.err = p.judge(); p.err != nil {
			return nil // the call has ended well, on every rank, with this result
		}
		second, places, err := p.place()
		if err != nil {
			return err
		}
		// The second step's messages go on counting rounds, so that none of them is taken
		// for one of the first.
		t.run.first, t.run.rounds = len(first.rounds), second.rounds
		if p.kind == KindBroadcastObject {
			t.run.over(newLayout(places[0], second.chunks, second.lanes))
		} else {
			t.run.over(listLayout(tensor.Uint8, places, second.lanes))
		}
		return do()
	}
	return p.g.issue(ctx, t)
}

// announce writes the sizes that this rank knows where the first step begins.
func (p *parcel) announce() {
	size := func(i int) int64 {
		if p.own != nil {
			return -1
		}
		return int64(len(p.mine[i]))
	}
	switch self := p.g.Rank(); {
	case !p.fromRoot():
		p.sizes[self] = size(0)
	case self == p.root:
		for i := range p.sizes {
			p.sizes[i] = size(i)
		}
	}
}

// judge says whose object cannot be moved, if any. Sizes come from peers.
func (p *parcel) judge() error {
	for i, n := range p.sizes {
		if n >= 0 && n <= p.g.c.MaxObject {
			continue
		}
		e := &ObjectError{Rank: p.g.ranks.world(p.sender(i)), Size: max(n, -1), Max: p.g.c.MaxObject}
		if p.sender(i) == p.g.Rank() {
			e.Err = p.own
		}
		return e
	}
	return nil
}

// place chooses the schedule of the second step, makes room for what it brings, and
// says what of that is for this rank.
func (p *parcel) place() (*plan, []tensor.Tensor, error) {
	step, all := parcelSteps[p.kind].bytes, int64(0)
	for _, n := range p.sizes {
		all += n
	}
	s, err := p.g.plans.choose(step, p.root, all)
	if err != nil {
		return s, nil, err
	}
	self := p.g.Rank()
	room := func(i int) tensor.Tensor {
		switch {
		case p.fromRoot() && self == p.root:
			return tensor.Of(p.mine[i])
		case !p.fromRoot() && self == i:
			return tensor.Of(p.mine[0])
		}
		return tensor.New(tensor.Uint8, int(p.sizes[i]))
	}
	var places []tensor.Tensor
	if self != p.root && (step == KindGather || step == KindScatter) {
		places = p.g.relay(s, room(self), func(c int) int { return int(p.sizes[c]) })
	} else {
		for i := range p.sizes {
			places = append(places, room(i))
		}
	}
	for i, x := range places {
		if step == KindScatter && self != i || step == KindGather && self != p.root {
			continue
		}
		b, _ := tensor.Data[uint8](x)
		p.got = append(p.got, encoding{p.g.ranks.world(p.sender(i)), b})
	}
	return s, places, nil
}
