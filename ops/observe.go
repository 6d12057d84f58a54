package ops

import "time"

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
// to be allocated. They must not call the group. To look at the clock costs as much as
// all else, so it is done once where an operation begins to move data, which needs the
// time in any case, and once when it has ended; without an Observer a collective pays
// for a comparison.
type Observer interface {
	// Begin says that an operation has its place, and returns by what name to tell of it
	// from then on. Those of one group and kind of ordering (its collectives; its
	// messages with a rank under a tag) come in the order of Seq. at is zero if the
	// operation is about to start, as it does where each is waited for as soon as it is
	// issued: its Start, which tells the time of both, comes within milliseconds.
	Begin(o Operation, at time.Time) (id uint64)
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

// announce tells the Observer, which there is, of an operation, and returns its name.
// soon leaves the time to its start.
func (g *Group) announce(soon bool, o Operation) (id uint64) {
	o.Group, o.Size, o.Rank, o.Members = g.id, g.ranks.n, g.ledger.self, g.ranks.list
	o.Bytes = int64(o.Count) * int64(o.DType.Size())
	var at time.Time
	if !soon {
		at = now()
	}
	return g.c.Observer.Begin(o, at)
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
