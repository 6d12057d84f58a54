package schedule

import "fmt"

// A Contract is what a collective promises: given that every chunk of every
// rank starts with a value of its own, what must be where at the end. Places
// that it does not name may end with anything.
//
// There is no clause for what is where at the start, because none is needed:
// in a broadcast, say, the other ranks start with values too, and the contract
// is met only if none of them is left. Contracts are comparable.
type Contract struct {
	kind      kind
	root      int
	canonical bool // of the sums
}

type kind uint8

const (
	allReduce kind = iota
	reduceScatter
	reduction
	allGather
	allToAll
	barrier
	broadcast // the rest have a root
	reduce
	gather
	scatter
)

// The contracts without a root. In those that deal out chunks (ReduceScatter,
// AllGather, AllToAll, Gather, Scatter) the number of chunks is a multiple of
// the ranks, and rank r's block is the r-th part of them: with as many chunks
// as ranks, chunk r.
var (
	// AllReduceContract: every rank ends with the sum of every chunk, added in
	// one order, so that all replicas agree bit for bit.
	AllReduceContract = Contract{kind: allReduce}
	// ReduceScatterContract: rank r ends with the sum of its block.
	ReduceScatterContract = Contract{kind: reduceScatter}
	// ReductionContract: the sum of each chunk ends on exactly one rank, no
	// matter which. It is what AllReduce asks of its argument.
	ReductionContract = Contract{kind: reduction}
	// AllGatherContract: every rank ends with what was block r of rank r, for
	// every r.
	AllGatherContract = Contract{kind: allGather}
	// AllToAllContract: rank r's block p is what was rank p's block r.
	AllToAllContract = Contract{kind: allToAll}
	// BarrierContract: every rank has heard from every rank, directly or
	// through others. A chunk is the set of ranks heard from, a fold is the
	// union, and since a union minds neither repetition nor order, neither does
	// the contract: a schedule that meets it need not be able to add.
	BarrierContract = Contract{kind: barrier}
)

// BroadcastContract: every rank ends with every chunk of the root.
func BroadcastContract(root int) Contract { return Contract{kind: broadcast, root: root} }

// ReduceContract: the root ends with the sum of every chunk.
func ReduceContract(root int) Contract { return Contract{kind: reduce, root: root} }

// GatherContract: the root ends with what was block r of rank r, for every r.
func GatherContract(root int) Contract { return Contract{kind: gather, root: root} }

// ScatterContract: rank r ends with what was block r of the root.
func ScatterContract(root int) Contract { return Contract{kind: scatter, root: root} }

// Canonical is c with the demand that every sum in it be added up in the
// canonical order, that of Fold and CanonicalOrder. What two schedules that keep
// it add up is then the same, bit for bit, whichever was chosen, for whatever
// size of vector and wherever in it. A contract without sums is returned as it
// is.
func (c Contract) Canonical() Contract {
	switch c.kind {
	case allReduce, reduceScatter, reduction, reduce:
		c.canonical = true
	}
	return c
}

// String is "all-reduce", "broadcast from rank 3", "canonical reduction" and the
// like.
func (c Contract) String() string {
	names := [...]string{"all-reduce", "reduce-scatter", "reduction", "all-gather", "all-to-all",
		"barrier", "broadcast from", "reduce to", "gather to", "scatter from"}
	name := names[c.kind]
	if c.canonical {
		name = "canonical " + name
	}
	if c.kind >= broadcast {
		name = fmt.Sprintf("%s rank %d", name, c.root)
	}
	return name
}

// allows reports why no schedule of these dimensions can meet c.
func (c Contract) allows(ranks, chunks int) error {
	switch c.kind {
	case reduceScatter, allGather, allToAll, gather, scatter:
		if chunks%ranks != 0 {
			return fmt.Errorf("%d chunks cannot be dealt to %d ranks", chunks, ranks)
		}
	}
	if c.root < 0 || c.root >= ranks {
		return fmt.Errorf("no rank %d among %d", c.root, ranks)
	}
	return nil
}

// A demand is what a contract wants of one chunk of one rank at the end.
type demand struct {
	what        want
	rank, chunk int // for a copy: of what
}

type want uint8

const (
	anything want = iota
	total         // the chunk added up over all ranks, each once
	union         // all ranks' tokens, however often
	original      // what one chunk of one rank was at the start
)

// demand is what c wants of chunk k of rank r, in a world that it allows.
func (c Contract) demand(r, k, ranks, chunks int) demand {
	block := max(chunks/ranks, 1)
	owner := k / block
	switch {
	case c.kind == allReduce,
		c.kind == reduceScatter && owner == r,
		c.kind == reduce && c.root == r:
		return demand{what: total}
	case c.kind == allGather,
		c.kind == gather && c.root == r:
		return demand{original, owner, k}
	case c.kind == broadcast,
		c.kind == scatter && owner == r:
		return demand{original, c.root, k}
	case c.kind == allToAll:
		return demand{original, owner, r*block + k%block}
	case c.kind == barrier:
		return demand{what: union}
	}
	return demand{}
}
