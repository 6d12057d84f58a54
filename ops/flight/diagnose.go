package flight

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Case is what kind of thing went wrong; see the package's page.
type Case string

// The cases, in the order in which they are looked for.
const (
	Mismatch Case = "mismatch"
	Gone     Case = "gone"
	Absent   Case = "absent"
	Late     Case = "late"
	Message  Case = "message"
	Stuck    Case = "stuck"
	Broken   Case = "failed"
	Well     Case = "well"
)

// A Diagnosis says what the ranks' records come to.
type Diagnosis struct {
	Case     Case
	Ranks    []int  // whom it is about; nil: all, or nobody
	Sentence string // one, for a person
	Rows     []Row  // by rank
	Aside    int    // records of other worlds, which were not looked at
}

// A Row is how far one rank has come.
type Row struct {
	Rank    int
	Peer    string        // empty: not known
	Missing bool          // it has left no record
	Count   int           // operations that the record has of this world
	Last    string        // the last operation that ended; empty: none
	Now     string        // the first that has not, or has failed; empty: none
	State   State         // of that
	Since   time.Duration // how long that has gone on, or went on until it failed
}

// Diagnose lays the records of a world's ranks side by side, and says what they come to.
// Of several worlds it looks at the last one, the one that most records are of.
func Diagnose(logs []*Log) (*Diagnosis, error) {
	if len(logs) == 0 {
		return nil, errors.New("flight: no records")
	}
	c, err := newCase(logs)
	if err != nil {
		return nil, err
	}
	d := &Diagnosis{Aside: len(logs) - len(c.logs)}
	for _, look := range []func(*inquest) *finding{
		(*inquest).mismatch, (*inquest).gone, (*inquest).absent, (*inquest).late, (*inquest).message,
		(*inquest).stuck, (*inquest).broken, (*inquest).slow, (*inquest).well,
	} {
		if f := look(c); f != nil {
			d.Case, d.Ranks, d.Sentence = f.is, f.ranks, f.text
			break
		}
	}
	for rank := range c.size {
		d.Rows = append(d.Rows, c.row(rank))
	}
	return d, nil
}

// A finding is what one look at the records has found.
type finding struct {
	is    Case
	ranks []int
	text  string
}

func found(is Case, ranks []int, format string, a ...any) *finding {
	return &finding{is, ranks, fmt.Sprintf(format, a...)}
}

// An inquest is the records of one world, laid side by side.
type inquest struct {
	size  int
	peers []string
	logs  map[int]*Log // by rank
	calls []*call      // of all groups, in the order in which somebody first came to them
	named map[name]*call
	// newest is the last operation that each rank began in each group.
	newest map[team]map[int]*Record
	teams  map[team][]int // the members of those that are not the whole world
}

// A team names a group: two that share no rank may share an ID.
type team struct {
	id    uint32
	first int // its first member
}

// A name is what the ranks call one collective.
type name struct {
	group team
	seq   uint64
}

// A call is one collective, as its ranks have recorded it.
type call struct {
	name
	size  int
	by    map[int]*Record // by rank
	first int64           // when, by the clock of whoever was first; only to sort by
}

// newCase takes the records of one world out of all.
func newCase(logs []*Log) (*inquest, error) {
	type world struct {
		name        string
		epoch       uint64
		size        int
		first, last string // of the peers
	}
	of := func(l *Log) world {
		w := world{name: l.World.Name, epoch: l.World.Epoch, size: l.World.Size}
		if n := len(l.World.Peers); n > 0 {
			w.first, w.last = l.World.Peers[0], l.World.Peers[n-1]
		}
		return w
	}
	count := make(map[world]int)
	for _, l := range logs {
		count[of(l)]++
	}
	chosen := slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b world) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(count[a], count[b]), cmp.Compare(a.size, b.size),
			cmp.Compare(a.name, b.name), cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	if chosen.size < 1 {
		return nil, errors.New("flight: no rank has been in a world yet")
	}
	c := &inquest{size: chosen.size, logs: make(map[int]*Log)}
	for _, l := range logs {
		if of(l) != chosen {
			continue
		}
		if old := c.logs[l.World.Rank]; old == nil || l.Time > old.Time {
			c.logs[l.World.Rank] = l
		}
		if c.peers == nil {
			c.peers = l.World.Peers
		}
	}
	c.gather()
	return c, nil
}

// gather finds the collectives.
func (c *inquest) gather() {
	c.named, c.newest, c.teams = make(map[name]*call), make(map[team]map[int]*Record), make(map[team][]int)
	for rank, l := range c.logs {
		for i := range l.Records {
			if r := &l.Records[i]; r.Epoch == l.World.Epoch && !r.message() {
				c.add(rank, c.team(l, r.Group), r)
			}
		}
	}
	c.calls = slices.SortedFunc(maps.Values(c.named), func(a, b *call) int {
		if a.group == b.group {
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.group.id, b.group.id), cmp.Compare(a.group.first, b.group.first))
	})
}

// team is the group that a rank calls by an ID.
func (c *inquest) team(l *Log, id uint32) team {
	for _, g := range l.Groups {
		if g.ID == id && g.Epoch == l.World.Epoch && len(g.Ranks) > 0 {
			t := team{id, g.Ranks[0]}
			c.teams[t] = g.Ranks
			return t
		}
	}
	return team{id: id}
}

func (c *inquest) add(rank int, t team, r *Record) {
	n := name{t, r.Seq}
	k := c.named[n]
	if k == nil {
		k = &call{name: n, size: r.Size, by: make(map[int]*Record), first: r.Begun}
		c.named[n] = k
	}
	k.by[rank], k.first = r, min(k.first, r.Begun)
	if c.newest[t] == nil {
		c.newest[t] = make(map[int]*Record)
	}
	if last := c.newest[t][rank]; last == nil || r.Seq > last.Seq {
		c.newest[t][rank] = r
	}
}

// at is a rank's record of a call, if it has one.
func (c *inquest) at(n name, rank int) *Record {
	if k := c.named[n]; k != nil {
		return k.by[rank]
	}
	return nil
}

// in are the ranks that are in one of some states with a call, in ascending order.
func (k *call) in(states ...State) []int {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.by)), func(rank int) bool { return !slices.Contains(states, k.by[rank].State) })
}

// lacks are the members of its group, with records, that have not come to a call. One
// that has a later call was there, and its ring no longer remembers.
func (c *inquest) lacks(k *call) (missing []int) {
	members, some := c.teams[k.group]
	if !some {
		members = slices.Sorted(maps.Keys(c.logs))
	}
	for _, rank := range members {
		if last := c.newest[k.group][rank]; c.logs[rank] != nil && (last == nil || last.Seq < k.seq) {
			missing = append(missing, rank)
		}
	}
	return missing
}

// row is how far a rank has come.
func (c *inquest) row(rank int) Row {
	w := Row{Rank: rank}
	if rank < len(c.peers) {
		w.Peer = c.peers[rank]
	}
	l := c.logs[rank]
	if l == nil {
		w.Missing = true
		return w
	}
	for i := range l.Records {
		r := &l.Records[i]
		if r.Epoch != l.World.Epoch {
			continue
		}
		w.Count++
		switch {
		case r.State == Done:
			w.Last = r.name()
		case w.Now == "":
			w.Now, w.State, w.Since = r.name(), r.State, l.since(r)
		}
	}
	return w
}

// since is how long an operation has gone on, or went on until it ended.
func (l *Log) since(r *Record) time.Duration {
	end := r.Ended
	if end == 0 {
		end = l.Time
	}
	return time.Duration(end - r.Begun)
}
