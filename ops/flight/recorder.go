package flight

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"peermesh/ops"
)

const (
	// DefaultPlaces is how many operations a Recorder of no size keeps.
	DefaultPlaces = 2048
	// MaxPlaces bounds what a Recorder keeps, and what is read of one.
	MaxPlaces = 1 << 14
)

// A World is one that a rank takes part in: one epoch of a mesh.
type World struct {
	Name  string   `json:"name,omitempty"` // of the mesh
	Epoch uint64   `json:"epoch"`
	Rank  int      `json:"rank"`
	Size  int      `json:"size"`
	Peers []string `json:"peers,omitempty"` // who the ranks are, by rank; may be nil
}

// A Recorder keeps the operations of one rank that were begun last. It is an
// ops.Observer, may be used by any number of groups at once, and read at any time.
//
// Where several ranks share a process, they share its count of operations: of n ranks,
// each with a Recorder, each keeps 1/n of its places.
type Recorder struct {
	places []place
	world  atomic.Pointer[World]
}

var _ ops.Observer = (*Recorder)(nil)

// A place holds one operation. Its lock is for whoever reads the record: operations
// that are at work have different places.
type place struct {
	mu                    sync.Mutex
	op                    ops.Operation // ID 0: none
	world                 *World
	begun, started, ended time.Time
	err                   error
}

// New makes a Recorder of the last n operations; n is at most MaxPlaces, and 0 stands for
// DefaultPlaces.
func New(n int) *Recorder {
	if n <= 0 {
		n = DefaultPlaces
	}
	r := &Recorder{places: make([]place, min(n, MaxPlaces))}
	r.world.Store(new(World))
	return r
}

// Enter says that operations from now on are of this world. Call it before the first.
func (r *Recorder) Enter(w World) {
	w.Peers = slices.Clone(w.Peers)
	r.world.Store(&w)
}

func (r *Recorder) place(id uint64) *place { return &r.places[id%uint64(len(r.places))] }

// Begin takes the place of the oldest operation.
func (r *Recorder) Begin(o ops.Operation, at time.Time) {
	world := r.world.Load()
	p := r.place(o.ID)
	p.mu.Lock()
	p.op, p.world, p.begun, p.err = o, world, at, nil
	p.started, p.ended = time.Time{}, time.Time{}
	p.mu.Unlock()
}

// Start notes that an operation moves data.
func (r *Recorder) Start(id uint64, at time.Time) {
	p := r.place(id)
	p.mu.Lock()
	if p.op.ID == id { // or else it has lasted for longer than the ring remembers
		p.started = at
	}
	p.mu.Unlock()
}

// End notes how an operation ended.
func (r *Recorder) End(id uint64, at time.Time, err error) {
	p := r.place(id)
	p.mu.Lock()
	if p.op.ID == id {
		p.ended, p.err = at, err
	}
	p.mu.Unlock()
}

// Records are the operations that are kept, the oldest first.
func (r *Recorder) Records() []Record {
	all, _ := r.records()
	return all
}

// records are the operations, and the groups that they were in.
func (r *Recorder) records() (all []Record, groups []Group) {
	for i := range r.places {
		record, members, ok := r.places[i].record()
		if !ok {
			continue
		}
		all = append(all, record)
		known := func(g Group) bool { return g.ID == record.Group && g.Epoch == record.Epoch }
		if members != nil && !slices.ContainsFunc(groups, known) {
			groups = append(groups, Group{record.Epoch, record.Group, members})
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	return all, groups
}

// record is what is written of a place, if there is anything.
func (p *place) record() (r Record, members []int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op.ID == 0 {
		return r, nil, false
	}
	o := p.op
	r = Record{
		ID: o.ID, Epoch: p.world.Epoch, Group: o.Group, Size: o.Size, Seq: o.Seq,
		Call: o.Call.String(), Kind: o.Kind.String(), DType: o.DType.String(), Op: o.Op.String(),
		Count: o.Count, Root: o.Root, Digest: o.Digest, Bytes: o.Bytes, Algorithm: o.Algorithm,
		Peer: o.Peer, Tag: o.Tag, Send: o.Send,
		Begun: nanos(p.begun), Started: nanos(p.started), Ended: nanos(p.ended),
	}
	switch {
	case p.err != nil:
		r.State, r.Error = Failed, clean(p.err.Error(), maxError)
	case !p.ended.IsZero():
		r.State = Done
	case !p.started.IsZero():
		r.State = Started
	default:
		r.State = Scheduled
	}
	return r, o.Members, true
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
