package mesh

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// maxDoubt bounds the worlds that a peer remembers without knowing whether
	// they stood on every rank. More than one takes a partition in the moment of
	// standing, again and again; a peer that has so many promises nothing more.
	maxDoubt = 16
	// maxPassed bounds the rosters that a peer remembers to have passed over. The
	// oldest are forgotten, which can only make others more careful.
	maxPassed = 64
	// maxLine and maxLineMembers bound the worlds before the last that a peer
	// remembers for those who were not in it, and all their members together.
	maxLine, maxLineMembers = 8, 4096
	// maxJump bounds how far one proposal may raise the epoch. Nobody can use up
	// all epochs by naming a huge one: at 2^20 a proposal it takes 2^42 of them.
	maxJump = 1 << 20
	// maxClaim is how much of that a proposer raises an epoch on the word of a
	// member that has promised a later one, so that a liar cannot lead it to
	// propose what others would refuse.
	maxClaim = 1 << 16
)

// A past is a world that has stood on every rank. Its members' signatures prove
// that, so nobody can make others believe in a world that never was.
type past struct {
	roster
	Stands [][]byte // by rank
}

// A passing is a roster that a peer acknowledged and never saw stand. Once the
// peer has promised a later epoch it never will.
type passing struct {
	Epoch  uint64
	Digest digest
}

// A memory is what a peer must not forget, or else must not vote: see "Who may go
// on" in the package's documentation.
type memory struct {
	Promised uint64    // the highest epoch acknowledged; nothing up to it will be again
	Last     *past     // the latest world known to have stood on every rank; nil: none
	Line     []*past   // worlds before Last, by epoch: see inherit
	Voter    bool      // whether this peer was in Last, and has forgotten nothing since
	Born     uint64    // up to that epoch, all that was is of an earlier life: see witnessed
	Doubt    []roster  // later worlds that stood here, but perhaps not everywhere; by epoch
	Passed   []passing // later rosters acknowledged that did not stand here; by epoch
}

// blank is the memory of a newcomer.
func (m *memory) blank() bool { return m.Last == nil && len(m.Doubt) == 0 }

// epoch is that of the latest world that stood on every rank.
func (m *memory) epoch() uint64 {
	if m.Last == nil {
		return 0
	}
	return m.Last.Epoch
}

// base is the digest of that world's roster.
func (m *memory) base() digest {
	if m.Last == nil {
		return digest{}
	}
	return m.Last.Digest
}

// clone is a copy that later changes to m leave alone.
func (m *memory) clone() *memory {
	c := *m
	c.Line, c.Doubt, c.Passed = slices.Clone(m.Line), slices.Clone(m.Doubt), slices.Clone(m.Passed)
	return &c
}

// promise acknowledges a roster: no roster of its epoch or before will be
// acknowledged any more, or stand.
func (m *memory) promise(r roster) error {
	switch {
	case r.Epoch <= m.Promised:
		return fmt.Errorf("mesh: epoch %d is past", r.Epoch)
	case len(m.Doubt) >= maxDoubt:
		return fmt.Errorf("mesh: %d worlds are in doubt", len(m.Doubt))
	}
	m.Promised = r.Epoch
	m.Passed = append(m.Passed, passing{r.Epoch, r.Digest})
	if n := len(m.Passed) - maxPassed; n > 0 {
		m.Passed = slices.Delete(m.Passed, 0, n)
	}
	return nil
}

// abort notes that a roster was given up by its proposer, and so by all.
func (m *memory) abort(d digest) {
	m.Passed = slices.DeleteFunc(m.Passed, func(p passing) bool { return p.Digest == d })
}

// stand notes that a world that was promised stands here. It fails if a later
// epoch has been promised in the meantime.
func (m *memory) stand(r roster) error {
	if r.Epoch != m.Promised || !m.passedOver(r.Digest) {
		return fmt.Errorf("mesh: epoch %d was given up for epoch %d", r.Epoch, m.Promised)
	}
	m.abort(r.Digest)
	m.Doubt = append(m.Doubt, r)
	return nil
}

// settle notes that a world has stood on every rank, which ends all doubts about
// it and about earlier ones. It reports whether that is news.
func (m *memory) settle(p *past) bool {
	if p.Epoch <= m.epoch() {
		return false
	}
	m.Voter = slices.ContainsFunc(m.Doubt, func(r roster) bool { return r.Digest == p.Digest })
	m.inherit(p)
	m.Last = p
	m.Doubt = slices.DeleteFunc(m.Doubt, func(r roster) bool { return r.Epoch <= p.Epoch })
	m.Passed = slices.DeleteFunc(m.Passed, func(q passing) bool { return q.Epoch <= p.Epoch })
	m.Promised = max(m.Promised, p.Epoch)
	return true
}

// inherit puts the last world into the line of those before p. By that line a peer
// that was away for several worlds, in which all members changed that it knew, can
// follow from one to the next: see related. A world whose members are all in p again
// leads nobody anywhere that p does not.
func (m *memory) inherit(p *past) {
	if m.Last != nil {
		m.Line = append(m.Line, m.Last)
	}
	m.Line = slices.DeleteFunc(m.Line, func(q *past) bool {
		return !slices.ContainsFunc(q.Members, func(id peer.ID) bool { return p.rank(id) < 0 })
	})
	n := 0
	for _, q := range m.Line {
		n += len(q.Members)
	}
	for len(m.Line) > maxLine || n > maxLineMembers {
		n -= len(m.Line[0].Members)
		m.Line = m.Line[1:]
	}
}

// related reports whether a past is one of ours: that of a newcomer, which knows
// of none, or one with a member of the last world that this peer knows. That
// member, unless it lies, has seen to it that the quorum was kept.
func (m *memory) related(p *past, self peer.ID) bool {
	if m.blank() {
		return true
	}
	with := func(r roster) bool {
		return slices.ContainsFunc(p.Members, func(id peer.ID) bool { return id != self && r.rank(id) >= 0 })
	}
	return m.Last != nil && with(m.Last.roster) || slices.ContainsFunc(m.Doubt, with)
}

// passedOver reports whether a roster was acknowledged and has not stood here.
func (m *memory) passedOver(d digest) bool {
	return slices.ContainsFunc(m.Passed, func(p passing) bool { return p.Digest == d })
}

// votes reports whether the peer was in a world, and has forgotten nothing since.
func (m *memory) votes(r roster) bool {
	if m.Last != nil && m.Last.Digest == r.Digest {
		return m.Voter
	}
	return slices.ContainsFunc(m.Doubt, func(d roster) bool { return d.Digest == r.Digest })
}

// A quorumError says which world keeps peers from forming the next one.
type quorumError struct {
	Of    roster
	Votes int
}

func (e *quorumError) Error() string {
	n := len(e.Of.Members)
	text := fmt.Sprintf("%d of the %d members of world %d are here and remember it; more than half must", e.Votes, n, e.Of.Epoch)
	if n%2 == 0 {
		text += fmt.Sprintf(", or half with its rank 0, %s", short(e.Of.Members[0]))
	}
	return text
}

// quorum reports whether those who vote may go on from a world: more than half of
// its members, or exactly half with its rank 0. Any two such sets share a member.
func quorum(of roster, votes func(peer.ID) bool) error {
	n := 0
	for _, id := range of.Members {
		if votes(id) {
			n++
		}
	}
	if 2*n > len(of.Members) || 2*n == len(of.Members) && votes(of.Members[0]) {
		return nil
	}
	return &quorumError{of, n}
}

// A witnessError says which world is remembered here only by those that have started
// again since.
type witnessError struct{ Of roster }

func (e *witnessError) Error() string {
	return fmt.Sprintf("all who are here of world %d have started again since, and what it had learned is with the others: %s",
		e.Of.Epoch, names(e.Of.Members))
}

// revive begins another life: of no world so far is this peer a witness any more.
func (m *memory) revive() { m.Born = m.Promised }

// witnessed reports whether one of the peers with these memories has lived on since it
// stood in a world that they go on from, and so has what was done in it. If all its members are
// here and none has, it is lost, and there is nobody to wait for.
func witnessed(of roster, minds map[peer.ID]*memory) error {
	for _, id := range of.Members {
		if m := minds[id]; m != nil && m.votes(of) && of.Epoch > m.Born {
			return nil
		}
	}
	if !slices.ContainsFunc(of.Members, func(id peer.ID) bool { return minds[id] == nil }) {
		return nil
	}
	return &witnessError{of}
}

// allows reports whether the peers with these memories may form the next world:
// they must have a quorum and a witness of the last world that any of them knows to
// have stood, and of each later one that may have. A later one of which a member is here that
// never stood in it, and so never will, is out.
func allows(minds map[peer.ID]*memory) error {
	var last *past
	for _, m := range minds {
		if m.Last != nil && (last == nil || m.Last.Epoch > last.Epoch) {
			last = m.Last
		}
	}
	var worlds []roster
	if last != nil {
		worlds = append(worlds, last.roster)
	}
	for _, m := range minds {
		for _, r := range m.Doubt {
			over := slices.ContainsFunc(r.Members, func(id peer.ID) bool { return minds[id] != nil && minds[id].passedOver(r.Digest) })
			if !over && (last == nil || r.Epoch > last.Epoch) {
				worlds = append(worlds, r)
			}
		}
	}
	for _, r := range worlds {
		if err := quorum(r, func(id peer.ID) bool { return minds[id] != nil && minds[id].votes(r) }); err != nil {
			return err
		}
		if err := witnessed(r, minds); err != nil {
			return err
		}
	}
	return nil
}

// mayGoOn is allows as far as one peer can judge alone: it takes everyone for
// someone who remembers what it remembers itself.
func (m *memory) mayGoOn(members []peer.ID) error {
	minds := make(map[peer.ID]*memory)
	for _, id := range members {
		minds[id] = &memory{Last: m.Last, Voter: true, Doubt: m.Doubt}
	}
	return allows(minds)
}
