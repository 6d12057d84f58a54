package trainer

import (
	"cmp"
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

const (
	// carryTag is the tag of the messages that carry parts, out of the way of a
	// caller's.
	carryTag = ops.MaxTag
	// carryWindow is how many parts a rank has in flight, each way.
	carryWindow = 8
)

// A haul is one rank's side of an exchange: who has the state gives from its
// body, who is to have it collects its cargo, and gives of that.
type haul struct {
	label label
	have  []bool // parts, not to change during the exchange but by it
	body  *body
	size  int64
	cargo *cargo // nil on who has everything
}

// A leg is one part's stop at this rank: it comes from prev, or is here, and goes
// on to next; −1 for neither.
type leg struct {
	part       int
	prev, next int
	work       *ops.Work // of the receiving
}

// exchange completes the cargo of every rank from the parts that any rank has. It
// is called by all of them.
//
// A part goes from one that has it along a chain of all that lack it, so every
// rank sends it at most once, however many are new, and long bodies flow at the
// speed of the links. The ranks that have a part take turns in giving, and the
// chains in their order.
//
// Every rank goes through its parts in the order of their numbers, with a few of
// them under way. So the first part that is not everywhere yet waits for nothing
// but its own messages, and nobody for anybody in a circle.
func (h *haul) exchange(parent context.Context, g *ops.Group) error {
	all, err := h.gather(parent, g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(parent)
	var coming []leg
	var going []*ops.Work
	err = func() error {
		for i := range h.have {
			l, ok := route(i, all, g.Rank())
			if !ok {
				continue
			}
			if l.prev >= 0 {
				l.work = g.Irecv(ctx, tensor.Of(h.cargo.part(i)), g.Global(l.prev), carryTag)
			}
			if coming = append(coming, l); len(coming) == carryWindow {
				if going, err = h.pass(ctx, g, coming[0], going); err != nil {
					return err
				}
				coming = coming[1:]
			}
		}
		for ; len(coming) > 0; coming = coming[1:] {
			if going, err = h.pass(ctx, g, coming[0], going); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		cancel() // of what is under way, which writes to the cargo
	}
	for _, l := range coming {
		if l.work != nil {
			err = cmp.Or(err, l.work.Wait())
		}
	}
	for _, w := range going {
		err = cmp.Or(err, w.Wait()) // the first says why; the others follow from it
	}
	cancel()
	if err != nil {
		return fmt.Errorf("trainer: carrying the state: %w", err)
	}
	return nil
}

// pass takes the part of a leg, when it has come, and sends it on.
func (h *haul) pass(ctx context.Context, g *ops.Group, l leg, going []*ops.Work) ([]*ops.Work, error) {
	if l.work != nil {
		if err := l.work.Wait(); err != nil {
			return going, err
		}
		if err := h.cargo.accept(l.part); err != nil {
			return going, fmt.Errorf("from rank %d: %w", l.prev, err)
		}
	}
	if l.next < 0 {
		return going, nil
	}
	if len(going) == carryWindow {
		if err := going[0].Wait(); err != nil {
			return going, err
		}
		going = going[1:]
	}
	p, err := h.part(l.part)
	if err != nil {
		return going, err
	}
	return append(going, g.Isend(ctx, tensor.Of(p), g.Global(l.next), carryTag)), nil
}

// part is the bytes of a part that is here.
func (h *haul) part(i int) ([]byte, error) {
	if h.cargo != nil {
		return h.cargo.part(i), nil
	}
	lo, hi := bounds(h.size, i)
	p := make([]byte, hi-lo)
	return p, h.body.read(p, lo)
}

// gather tells all ranks which parts each has, and refuses what nobody has.
func (h *haul) gather(ctx context.Context, g *ops.Group) ([][]bool, error) {
	in := make([]bool, len(h.have))
	copy(in, h.have)
	out := make([]bool, len(in)*g.Size())
	if err := g.AllGather(ctx, tensor.Of(out), tensor.Of(in)).Wait(); err != nil {
		return nil, fmt.Errorf("trainer: comparing states: %w", err)
	}
	all := make([][]bool, g.Size())
	for rank := range all {
		all[rank] = out[rank*len(in):][:len(in)]
	}
	var lost []int
	for i := range in {
		if _, ok := holder(i, all); !ok {
			lost = append(lost, i)
		}
	}
	if len(lost) > 0 {
		return nil, &LostPartsError{Parts: lost, Of: len(in)}
	}
	return all, nil
}

// A LostPartsError says that no rank has some of the parts of a state, of 1 MiB
// each. Every rank gets it.
type LostPartsError struct {
	Parts []int
	Of    int // parts that there are
}

func (e *LostPartsError) Error() string {
	return fmt.Sprintf("trainer: no rank has %d of the %d parts of the state, the first being part %d", len(e.Parts), e.Of, e.Parts[0])
}

// holder is the rank that gives part i.
func holder(i int, all [][]bool) (int, bool) {
	var ranks []int
	for rank, have := range all {
		if have[i] {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == 0 {
		return 0, false
	}
	return ranks[i%len(ranks)], true
}

// route is the leg of part i at a rank, if it has one. all is by rank and part,
// and every part is somewhere.
func route(i int, all [][]bool, rank int) (leg, bool) {
	giver, _ := holder(i, all)
	chain := []int{giver}
	for k := range all {
		if r := (k + i) % len(all); !all[r][i] {
			chain = append(chain, r)
		}
	}
	for k, r := range chain {
		if r != rank || len(chain) == 1 {
			continue
		}
		l := leg{part: i, prev: -1, next: -1}
		if k > 0 {
			l.prev = chain[k-1]
		}
		if k+1 < len(chain) {
			l.next = chain[k+1]
		}
		return l, true
	}
	return leg{}, false
}
