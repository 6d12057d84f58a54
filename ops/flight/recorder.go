package flight

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"peermesh/ops"
)

const (
	// DefaultPlaces is how many operations a Recorder of no size keeps.
	DefaultPlaces = 2048
	// MaxPlaces bounds what a Recorder keeps, and what is read of one.
	MaxPlaces = 1 << 14
	// maxGroups bounds the groups whose operations share what they have in common.
	maxGroups = 64
)

// A World is one that a rank takes part in: one epoch of a mesh.
type World struct {
	Name  string   `json:"name,omitempty"` // of the mesh
	Epoch uint64   `json:"epoch"`
	Rank  int      `json:"rank"`
	Size  int      `json:"size"`
	Peers []string `json:"peers,omitempty"` // who the ranks are, by rank; may be nil
}

// A Recorder keeps the operations of one rank that were begun last, and counts all of
// them. It is an ops.Observer, may be used by any number of groups at once, and read at
// any time.
type Recorder struct {
	// One lock for all, held for some 10 ns: the operations of a rank hardly ever
	// begin and end in the same moment, and whoever reads takes it for each place anew.
	mu     sync.Mutex
	last   uint64  // operation; the first is 1
	head   int     // where it is
	places []place // a ring
	group  *group  // that of the last operation; nil: none yet
	open   int     // places whose operation has not ended
	// Up to here is a cache line, and the next has what is changed of the tally.
	zero time.Time // what times count from
	tally
	world  *World
	groups []*group // of this world, the default group first
}

var _ ops.Observer = (*Recorder)(nil)

// A place holds one operation, in the two cache lines that it costs to record one.
type place struct {
	id                    uint64 // 0: none
	group                 *group
	call                  ops.Call
	bytes                 int64
	algorithm             string
	peer                  int32
	tag                   uint32
	send                  bool
	ran                   bool // it has been at work
	state                 stage
	begun, started, ended time.Duration // since the Recorder's zero; begun may be soon
	err                   error
}

// soon is when an operation has begun that is about to start.
const soon = -1

// A stage is a State, in short.
type stage uint8

const (
	scheduled stage = iota
	started
	done
	failed
)

// underway reports whether the place's operation has not ended.
func (p *place) underway() bool { return p.id != 0 && p.state < done }

// A group is what its operations have in common.
type group struct {
	world   *World
	id      uint32
	size    int
	members []int // nil: all
}

// New makes a Recorder of the last n operations; n is at most MaxPlaces, and 0 stands for
// DefaultPlaces.
func New(n int) *Recorder {
	if n <= 0 {
		n = DefaultPlaces
	}
	return &Recorder{zero: time.Now(), places: make([]place, min(n, MaxPlaces)), world: new(World)}
}

// Enter says that operations from now on are of this world. Call it before the first.
func (r *Recorder) Enter(w World) {
	w.Peers = slices.Clone(w.Peers)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world, r.group, r.groups = &w, nil, nil
}

// now is the world that operations are of.
func (r *Recorder) now() World {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.world
}

// place is where an operation is, or was until another took its place; nil: it has never
// been. The lock is held. To count back from the head takes no division.
func (r *Recorder) place(id uint64) *place {
	back := r.last - id
	if back >= uint64(len(r.places)) {
		return nil
	}
	i := r.head - int(back)
	if i < 0 {
		i += len(r.places)
	}
	return &r.places[i]
}

// of is the group that an operation is of. The lock is held.
func (r *Recorder) of(o *ops.Operation) *group {
	same := func(g *group) bool { return g.id == o.Group && g.size == o.Size }
	if i := slices.IndexFunc(r.groups, same); i >= 0 {
		return r.groups[i]
	}
	g := &group{r.world, o.Group, o.Size, o.Members}
	if r.groups = append(r.groups, g); len(r.groups) > maxGroups {
		r.groups = slices.Delete(r.groups, 1, 2) // it is found anew if it is used again
	}
	return g
}

// Begin takes the place of the oldest operation. One that has not ended is lost sight of.
func (r *Recorder) Begin(o ops.Operation, at time.Time) (id uint64) {
	begun := time.Duration(soon)
	if !at.IsZero() {
		begun = at.Sub(r.zero)
	}
	r.mu.Lock()
	r.last++
	id = r.last
	if r.head++; r.head == len(r.places) {
		r.head = 0
	}
	if r.group == nil || r.group.id != o.Group || r.group.size != o.Size {
		r.group = r.of(&o)
	}
	p := &r.places[r.head]
	switch {
	case !p.underway():
		r.open++
	case p.state == started:
		r.rest(time.Since(r.zero))
	}
	p.id, p.group, p.call, p.bytes, p.algorithm = id, r.group, o.Call, o.Bytes, o.Algorithm
	p.peer, p.tag, p.send, p.ran, p.state = int32(o.Peer), o.Tag, o.Send, false, scheduled
	p.begun, p.started, p.ended = begun, 0, 0
	if p.err != nil {
		p.err = nil
	}
	r.mu.Unlock()
	return id
}

// Start notes that an operation moves data.
func (r *Recorder) Start(id uint64, at time.Time) {
	since := at.Sub(r.zero)
	r.mu.Lock()
	// Or else it has lasted for longer than the ring remembers.
	if p := r.place(id); p != nil && p.state == scheduled {
		p.state, p.ran, p.started = started, true, since
		if p.begun == soon {
			p.begun = since
		}
		r.stir(since)
	}
	r.mu.Unlock()
}

// End notes how an operation ended.
func (r *Recorder) End(id uint64, at time.Time, err error) {
	r.mu.Lock()
	if p := r.place(id); p != nil && p.underway() {
		p.ended = at.Sub(r.zero)
		r.open--
		r.count(p, err)
		if p.state = done; err != nil {
			p.state, p.err = failed, err
		}
	}
	r.mu.Unlock()
}

// Records are the operations that are kept, the oldest first.
func (r *Recorder) Records() []Record {
	all, _ := r.records()
	return all
}

// records are the operations, and the groups that they were in.
func (r *Recorder) records() (all []Record, groups []Group) {
	for i := range r.places {
		p, ok := r.copied(i)
		if !ok {
			continue
		}
		record, members := p.record(r.zero), p.group.members
		all = append(all, record)
		known := func(g Group) bool { return g.ID == record.Group && g.Epoch == record.Epoch }
		if members != nil && !slices.ContainsFunc(groups, known) {
			groups = append(groups, Group{record.Epoch, record.Group, members})
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	return all, groups
}

// copied is what place i holds, if it does.
func (r *Recorder) copied(i int) (p place, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = r.places[i]
	if p.begun == soon {
		p.begun = time.Since(r.zero)
	}
	return p, p.id != 0
}

// record is what is written of a place.
func (p *place) record(zero time.Time) Record {
	c := p.call
	at := func(d time.Duration) int64 { return zero.Add(d).UnixNano() }
	r := Record{
		ID: p.id, Epoch: p.group.world.Epoch, Group: p.group.id, Size: p.group.size, Seq: c.Seq,
		Call: c.String(), Kind: c.Kind.String(), DType: c.DType.String(), Op: c.Op.String(),
		Count: c.Count, Root: c.Root, Digest: c.Digest, Bytes: p.bytes, Algorithm: p.algorithm,
		Peer: int(p.peer), Tag: p.tag, Send: p.send, State: states[p.state], Begun: at(p.begun),
	}
	if p.ran {
		r.Started = at(p.started)
	}
	if !p.underway() {
		r.Ended = at(p.ended)
	}
	if p.err != nil {
		r.Error = clean(p.err.Error(), maxError)
	}
	return r
}

var states = [...]State{scheduled: Scheduled, started: Started, done: Done, failed: Failed}
