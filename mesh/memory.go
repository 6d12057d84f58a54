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
	// maxBare bounds the epochs of those, and of the last, that stood for a peer without
	// what they went on from.
	maxBare = maxDoubt + 1
	// maxPassed bounds the rosters that a peer remembers to have passed over. The
	// oldest are forgotten, which can only make others more careful.
	maxPassed = 64
	// maxLine and maxLineMembers bound the worlds before the last that a peer remembers
	// for those who were not in it, and all their members together; and likewise those
	// that may matter if all that was done in the last is lost.
	maxLine, maxLineMembers = 8, 4096
	// maxJump bounds how far one proposal may raise the epoch. Nobody can use up
	// all epochs by naming a huge one: at 2^20 a proposal it takes 2^42 of them.
	maxJump = 1 << 20
	// maxClaim is how much of that a proposer raises an epoch on the word of a
	// member that has promised a later one, so that a liar cannot lead it to
	// propose what others would refuse.
	maxClaim = 1 << 16
)

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
	Born     uint64    // up to that epoch, all that was is of an earlier life: see witness
	Bare     []uint64  // epochs of worlds that stood here without what they went on from; ascending
	Before   []former  // worlds that the last one went on from, by epoch: see succeed
	Ahead    uint64    // the latest epoch in which more was done than in all before: see advance
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
	c.Line, c.Bare = slices.Clone(m.Line), slices.Clone(m.Bare)
	c.Before, c.Doubt, c.Passed = slices.Clone(m.Before), slices.Clone(m.Doubt), slices.Clone(m.Passed)
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

// stand notes that a world that was promised stands here, and whether this peer has
// what was done in the worlds that it goes on from. It fails if a later epoch has been
// promised in the meantime.
func (m *memory) stand(r roster, has bool) error {
	if r.Epoch != m.Promised || !m.passedOver(r.Digest) {
		return fmt.Errorf("mesh: epoch %d was given up for epoch %d", r.Epoch, m.Promised)
	}
	m.abort(r.Digest)
	m.Doubt = append(m.Doubt, r)
	if !has {
		m.Bare = append(m.Bare, r.Epoch)
	}
	return nil
}

// settle notes that a world has stood on every rank, which ends all doubts about
// it and about earlier ones. It reports whether that is news.
func (m *memory) settle(p *past) bool {
	if p.Epoch <= m.epoch() {
		return false
	}
	m.inherit(p)
	m.succeed(p)
	m.Voter = slices.ContainsFunc(m.Doubt, func(r roster) bool { return r.Digest == p.Digest })
	m.Last = p
	m.Doubt = slices.DeleteFunc(m.Doubt, func(r roster) bool { return r.Epoch <= p.Epoch })
	m.Passed = slices.DeleteFunc(m.Passed, func(q passing) bool { return q.Epoch <= p.Epoch })
	m.Bare = slices.DeleteFunc(m.Bare, func(e uint64) bool { return e < p.Epoch })
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
	m.Line = slices.DeleteFunc(m.Line, func(q *past) bool { return q.within(p.roster) })
	m.Line = latest(m.Line, func(q *past) int { return len(q.Members) })
}

// latest are as many of the worlds at the end of a list as a memory has room for.
func latest[W any](worlds []W, members func(W) int) []W {
	n := 0
	for _, w := range worlds {
		n += members(w)
	}
	for len(worlds) > maxLine || n > maxLineMembers {
		n -= members(worlds[0])
		worlds = worlds[1:]
	}
	return worlds
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
