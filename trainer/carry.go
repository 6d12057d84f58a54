package trainer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// Carry brings all ranks of a new world to one state, before its first step: that
// of the ranks which have finished the most. Those that lack it, because they are
// new or because the last world ended in the middle of a step, get it from those
// that have it, each of whom gives a share. Every rank of the group calls Carry,
// at the same place among the group's operations. If all agree already, all that
// moves is their hashes.
//
// Where nobody has finished a step, all get rank 0's state, as in a [DDP]. Of two that
// have finished as many, in different worlds, the later world's counts: a rank that was cut
// off when it alone had finished a step gets what the others have made of it since.
//
// What arrives is verified part by part and as a whole, and replaces the state
// only when all of it is there: until then s is what it was, and counts in a
// later world. If the world ends in between, because a giver died, call Carry in
// the next one with the same s: it goes on with what it has.
//
// Ranks that list other tensors each get a *[ParamsError]; ranks that have taken
// as many steps, in one world, to different states, a *[DivergedError]. After an error some
// ranks may still be waiting: give it to the world's End.
//
// It takes memory for a second state while it receives one.
func Carry(ctx context.Context, g *ops.Group, s *State) error {
	own, err := s.survey(ctx, g)
	if err != nil {
		return err
	}
	offers, err := gatherOffers(ctx, g, own.offer(s))
	if err != nil {
		return err
	}
	givers, err := choose(offers)
	if err != nil {
		return err
	}
	if err := s.receive(ctx, g, own, offers, givers); err != nil {
		return err
	}
	s.lineage = lineage{made: offers[best(offers)].made, world: nextWorld(offers), began: s.Progress}
	return nil
}

// receive gives what the givers have to those who lack it.
func (s *State) receive(ctx context.Context, g *ops.Group, own *haul, offers []offer, givers []bool) error {
	if !slices.Contains(givers, false) {
		s.incoming = nil
		return nil
	}
	first := slices.Index(givers, true)
	l, err := own.label.share(ctx, g, first, offers[first])
	if err != nil {
		return err
	}
	if givers[g.Rank()] {
		s.incoming = nil
		own.have = slices.Repeat([]bool{true}, len(l.sums))
		return own.exchange(ctx, g)
	}
	if s.incoming == nil || s.incoming.whole != l.hash() {
		s.incoming = newCargo(l, own.size)
	}
	if err := (&haul{cargo: s.incoming, label: l, have: s.incoming.have}).exchange(ctx, g); err != nil {
		return err
	}
	c := s.incoming
	s.incoming = nil
	return c.unload(s)
}

// A DivergedError says that ranks have finished the same steps and have different
// states, which no right program and no sound memory leads to. Every rank gets it.
type DivergedError struct {
	Progress Progress
	Ranks    [][]int // those that agree with each other, the first rank's first
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("trainer: at %v, ranks have different states: %v agree with each other only", e.Progress, e.Ranks)
}

// survey compares what all ranks list and hashes what this one has.
func (s *State) survey(ctx context.Context, g *ops.Group) (*haul, error) {
	own := s.check()
	var h haul
	if own == nil {
		h.label, own = s.label()
	}
	if err := verifyLines(ctx, g, s.lines(), own); err != nil {
		return nil, err
	}
	h.body = newBody(s.all())
	h.size = h.body.size()
	return &h, nil
}

// compareLists is survey without the hashing.
func (s *State) compareLists(ctx context.Context, g *ops.Group) error {
	return verifyLines(ctx, g, s.lines(), s.check())
}

// lines describes the tensors, one a line.
func (s *State) lines() []string {
	var lines []string
	for _, p := range s.all() {
		if p != nil {
			lines = append(lines, describeValue(p))
		}
	}
	return lines
}

// An offer is what a rank says of its state.
type offer struct {
	Progress
	made, world int64 // of its lineage
	head        int64 // its length in bytes
	whole       sum
}

const offerSize = 6*8 + len(sum{})

func (h *haul) offer(s *State) offer {
	return offer{s.Progress, s.made(), s.lineage.world, int64(len(h.label.head)), h.label.hash()}
}

// compare orders offers by what is to count: more steps, or of as many the later world's,
// or what has been done after them.
func (o offer) compare(p offer) int {
	return cmp.Or(cmp.Compare(o.Step, p.Step), cmp.Compare(o.made, p.made), o.Progress.compare(p.Progress))
}

func gatherOffers(ctx context.Context, g *ops.Group, own offer) ([]offer, error) {
	in := make([]byte, 0, offerSize)
	for _, n := range []int64{own.Step, own.Epoch, own.Consumed, own.made, own.world, own.head} {
		in = binary.LittleEndian.AppendUint64(in, uint64(n))
	}
	in = append(in, own.whole[:]...)
	out := make([]byte, offerSize*g.Size())
	if err := g.AllGather(ctx, tensor.Of(out), tensor.Of(in)).Wait(); err != nil {
		return nil, fmt.Errorf("trainer: comparing states: %w", err)
	}
	offers := make([]offer, g.Size())
	for rank := range offers {
		r := reader{p: out[rank*offerSize:][:offerSize]}
		offers[rank] = offer{Progress: Progress{r.int64(), r.int64(), r.int64()}, made: r.int64(), world: r.int64(), head: r.int64(), whole: sum(r.take(len(sum{})))}
		if o := offers[rank]; r.err == nil && (o.head > maxHead || o.made > o.world || o.world > maxWorlds) {
			r.fail("a head of %d bytes, made in world %d of %d", o.head, o.made, o.world)
		}
		if r.err != nil {
			return nil, fmt.Errorf("trainer: the state of rank %d: %w", rank, r.err)
		}
	}
	return offers, nil
}

// maxWorlds bounds the worlds of a run.
const maxWorlds = 1 << 62

// nextWorld numbers the world whose ranks have made these offers.
func nextWorld(offers []offer) (world int64) {
	for _, o := range offers {
		world = max(world, o.world)
	}
	return min(world+1, maxWorlds)
}

// best is the first rank that has what is to count; where nobody has finished anything,
// rank 0.
func best(offers []offer) (rank int) {
	for i, o := range offers {
		if o.compare(offers[rank]) > 0 {
			rank = i
		}
	}
	if offers[rank].Progress.compare(Progress{}) == 0 {
		return 0
	}
	return rank
}

// choose says who has the state that all are to have. It is a function of what
// all ranks know.
func choose(offers []offer) (givers []bool, err error) {
	best := offers[best(offers)]
	givers = make([]bool, len(offers))
	seen := make(map[sum]int) // place in apart
	var apart [][]int
	for rank, o := range offers {
		givers[rank] = o.whole == best.whole
		if o.compare(best) != 0 {
			continue
		}
		i, ok := seen[o.whole]
		if !ok {
			i = len(apart)
			seen[o.whole] = i
			apart = append(apart, nil)
		}
		apart[i] = append(apart[i], rank)
	}
	if len(apart) > 1 && best.Progress.compare(Progress{}) != 0 {
		return nil, &DivergedError{Progress: best.Progress, Ranks: apart}
	}
	return givers, nil
}

// share gives all ranks the label of rank first, which said o of it.
func (l label) share(ctx context.Context, g *ops.Group, first int, o offer) (label, error) {
	p := make([]byte, int(o.head)+len(l.sums)*len(sum{}))
	if g.Rank() == first {
		copy(p, l.bytes())
	}
	if err := g.Broadcast(ctx, tensor.Of(p), first).Wait(); err != nil {
		return label{}, fmt.Errorf("trainer: carrying the state: %w", err)
	}
	got := label{head: bytes.Clone(p[:o.head]), sums: make([]sum, len(l.sums))}
	for i := range got.sums {
		got.sums[i] = sum(p[int(o.head)+i*len(sum{}):])
	}
	if got.hash() != o.whole {
		return label{}, fmt.Errorf("trainer: carrying the state: the hashes of its parts are not those that rank %d announced", first)
	}
	return got, nil
}

// bytes are the head and the sums.
func (l label) bytes() []byte {
	p := bytes.Clone(l.head)
	for i := range l.sums {
		p = append(p, l.sums[i][:]...)
	}
	return p
}
