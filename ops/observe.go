package ops

import (
	"sync/atomic"
	"time"
)

// An Observer is told of every operation of the groups whose Config has it, and of the
// groups that are split off from them: what is in flight, what has been, and how long
// it took. Flight recorders, metrics and pages for people are made of it.
//
// An operation is begun when it takes its place in the order, started when its turn has
// come and it moves data, and ended just before its Work is. One that is refused for
// its arguments never takes a place, and nothing is told of it; neither is of those
// that a process skips since it is not in the group.
//
// The methods are called where the data moves, Begin even under a group's lock, and
// each from many goroutines at once. They must return within some 100 ns: note and
// go, with no lock that others hold for long, no channel that may be full, no memory
// to be allocated. They must not call the group. To tell the time three times and
// to call the methods is all that an operation pays, and without an Observer it pays
// for a comparison.
type Observer interface {
	// Begin says that an operation has its place. Those of one group and kind of
	// ordering (its collectives; its messages with a rank under a tag) come in the
	// order of Seq.
	Begin(o Operation, at time.Time)
	// Start says that an operation's turn has come.
	Start(id uint64, at time.Time)
	// End says that an operation has ended on this rank, and how: err is what Wait
	// will return (for a message of a Batch, its part of that).
	End(id uint64, at time.Time, err error)
}

// An Operation is what an Observer is told of one when it begins.
type Operation struct {
	// Call is what the ranks must agree on, and its String names it. For messages Seq
	// counts those to or from Peer under Tag; for a receive from any rank it is 0.
	Call
	// ID is another for each operation of this process, from 1, and grows: of a ring
	// of n places, ID mod n is one that none of the last n operations has.
	ID    uint64
	Group uint32 // 0 is the world's default group; two that share no rank may share it
	Size  int    // of the group, in ranks
	Rank  int    // this process's, in the world
	// Members are the group's ranks in the world, and not to be changed; nil: all of it.
	Members []int
	// Bytes is Count elements: what this rank's tensor holds, not what goes over the
	// wire, which depends on the schedule. Objects have 0.
	Bytes     int64
	Algorithm string // the schedule's name; "" for a message
	// The rest is set where Kind is KindSend.
	Peer int // the other rank, in the world; −1: any
	Tag  uint32
	Send bool // or else it receives
}

// Observers tells several of the same operations; nil ones are left out. With none
// it is nil.
func Observers(list ...Observer) Observer {
	var some observers
	for _, o := range list {
		if o != nil {
			some = append(some, o)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return some
}

type observers []Observer

func (s observers) Begin(o Operation, at time.Time) {
	for _, each := range s {
		each.Begin(o, at)
	}
}

func (s observers) Start(id uint64, at time.Time) {
	for _, each := range s {
		each.Start(id, at)
	}
}

func (s observers) End(id uint64, at time.Time, err error) {
	for _, each := range s {
		each.End(id, at, err)
	}
}

// operations counts those that were observed in this process: groups of several
// worlds may have one Observer.
var operations atomic.Uint64

// announce tells the Observer, which there is, of an operation, and returns its ID.
func (g *Group) announce(o Operation) uint64 {
	o.ID, o.Group, o.Size, o.Rank, o.Members = operations.Add(1), g.id, g.ranks.n, g.self(), g.ranks.list
	o.Bytes = int64(o.Count) * int64(o.DType.Size())
	g.c.Observer.Begin(o, now())
	return o.ID
}

// observed does what an operation is about between its start and its end.
func (g *Group) observed(id uint64, do func() error) error {
	g.c.Observer.Start(id, now())
	err := do()
	g.c.Observer.End(id, now(), err)
	return err
}

// loaded is when this process began, which now counts from: to read one clock takes half
// as long as to read the two of time.Now.
var loaded = time.Now()

func now() time.Time { return loaded.Add(time.Since(loaded)) }
