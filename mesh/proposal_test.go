package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// A stream of an epoch that was promised tells a member that the others have
// committed it, whatever became of the proposer's word. One of an epoch that was
// given up is out of date.
func TestStreamsTellOfTheCommit(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), true)
	p.meet(n)

	q := p.proposal(1, nil, n.ID())
	aborted, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("%+v", a)
	}
	p.say(aborted, verdictAbort)
	if _, err := io.ReadAll(aborted); err != nil { // until the promise is taken back
		t.Fatal(err)
	}
	resetWith(t, p.node, n, controlProtocol, hello{Epoch: 1, Digest: q.roster.Digest}.append(nil), node.ErrStale)
	if _, a = p.propose(n, q); a.Code != declineStale || a.Epoch != 1 {
		t.Errorf("an epoch a second time: %+v", a)
	}

	q = p.proposal(2, nil, n.ID())
	gone, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("second try: %+v", a)
	}
	gone.Reset(node.ErrClosed)
	await(t, m, func() bool { return m.promise == nil })
	resetWith(t, p.node, n, controlProtocol, hello{Epoch: 2, Digest: q.roster.Digest}.append(nil), node.ErrStale)

	q = p.proposal(3, nil, n.ID())
	silent, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("third try: %+v", a)
	}
	early := p.linkTo(n, q.roster)
	if h, err := readHello(early); err != nil || h.Digest != q.roster.Digest {
		t.Errorf("a stream of an epoch that was promised: %+v, %v", h, err)
	}
	early.Reset(node.ErrClosed)
	silent.Reset(node.ErrClosed)
}

// A member's stream may come before the proposer has all answers; it waits.
func TestProposerHoldsStreams(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), false)
	control := make(chan *node.Stream, 2)
	stop, err := p.node.Handle(t.Context(), formProtocol, func(s *node.Stream) {
		defer s.Close()
		q, err := readProposal(s, s.Peer())
		if err != nil {
			t.Error(err)
			return
		}
		early := p.linkTo(n, q.roster)
		await(t, m, func() bool { return m.held == 1 })
		p.say(s, appendVote(&answer{}, new(memory))...)
		// It is known by then, but that from the lower rank stands.
		if _, err := readHello(early); err != nil && !errors.Is(err, node.ErrLimit) {
			t.Error(err)
		}
		control <- early
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	stopControl, err := p.node.Handle(t.Context(), controlProtocol, func(s *node.Stream) {
		if h, err := readHello(s); err == nil {
			h.From = 1
			p.say(s, h.append(nil)...)
		}
		control <- s
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopControl()
	p.meet(n)
	defer func() {
		for range len(control) {
			(<-control).Reset(node.ErrClosed)
		}
	}()
	w, err := m.World(t.Context())
	if err != nil || w.Size() != 2 {
		t.Error(err)
	}
}

// What a member says to proposals that it cannot take, over the wire.
func TestProposalsDeclined(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), true)
	p.meet(n)
	q := p.proposal(1, nil, n.ID())
	promised, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("%+v", a)
	}
	declined := func(why uint8, q *proposal) {
		t.Helper()
		s, a := p.propose(n, q)
		if a.Code != why || a.Text == "" {
			t.Errorf("got %+v, want code %d", a, why)
		}
		s.Close()
	}
	declined(declineBusy, p.proposal(2, nil, n.ID()))
	p.say(promised, verdictAbort)
	if _, err := io.ReadAll(promised); err != nil { // until the promise is taken back
		t.Fatal(err)
	}
	alone := &proposal{mind: new(memory), members: []*announcement{p.self}, roster: newRoster(defaultName, 1, digest{}, []peer.ID{p.self.ID})}
	declined(refuseSize, alone)
	declined(declineStale, q)
	declined(declineQuorum, p.proposal(maxJump+5, nil, n.ID()))
	await(t, m, func() bool { return m.contacts[p.self.ID].fault != "" })
	m.forgive(p.self.ID)
	other := p.proposal(2, nil, n.ID())
	other.members[1] = newAnnouncement(t, defaultName, 3)
	if compareID(other.members[1].ID, p.self.ID) > 0 {
		declined(refuseName, other)
	}
	q = p.proposal(3, nil, n.ID())
	s, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("after the abort: %+v", a)
	}
	p.say(s, verdictCommit)
	link := p.linkTo(n, q.roster)
	if _, err := readHello(link); err != nil {
		t.Fatal(err)
	}
	next := p.proposal(4, &past{q.roster, [][]byte{{1}, {2}}}, n.ID())
	declined(declineWorld, next)
	if a := p.meet(n); a.Code != answerYes || a.Epoch != 3 {
		t.Errorf("a member meets again: %+v", a)
	}
	w, err := m.World(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link.Reset(node.ErrClosed)
	if err := ended(w, 0, ErrLost); err != nil {
		t.Error(err)
	}
	<-w.done
	declined(declineIdle, next) // nobody has asked for the next world
}

// A member that was to be linked but goes away before is named too.
func TestAbsent(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), false) // the higher one: our side opens the control stream
	over, end := context.WithCancel(t.Context())
	stop, err := p.node.Handle(t.Context(), formProtocol, func(s *node.Stream) {
		defer s.Close()
		q, err := readProposal(s, s.Peer())
		if err != nil || len(q.members) != 2 {
			t.Errorf("proposal %+v, %v", q, err)
		}
		p.say(s, appendVote(&answer{}, new(memory))...)
		if verdict, err := readFull(s, 1); over.Err() == nil && (err != nil || verdict[0] == verdictAbort) {
			t.Errorf("verdict %v, %v", verdict, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer end() // which may come between an answer and its verdict: it tries again and again
	p.meet(n)
	// The puppet knows no control protocol: that world never stood, and another is
	// tried.
	await(t, m, func() bool { return strings.Contains(m.declined, "does not speak") })
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.contacts[p.self.ID]; c.faults == 0 || !strings.Contains(m.declined, "rank 1") {
		t.Errorf("%+v, %s", c, m.declined)
	}
}

// A member that declines, and one that does not answer, are reasons that people
// get to read; the proposer tries again.
func TestProposerSaysWhyNot(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), false)
	tries := 0
	stop, err := p.node.Handle(t.Context(), formProtocol, func(s *node.Stream) {
		defer s.Close()
		q, err := readProposal(s, s.Peer())
		if err != nil {
			t.Error(err)
			return
		}
		tries++
		if tries == 1 {
			p.say(s, appendVote(&answer{Code: declineStale, Epoch: 7, Text: "epoch 1 is past"}, new(memory))...)
			return
		}
		if tries == 2 && q.roster.Epoch != 8 {
			t.Errorf("after it was told of epoch 7: %+v", q.roster)
		}
		p.say(s, (&answer{Code: declineBusy, Text: "not\nnow"}).append(nil)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	p.meet(n)
	awaitReason(t, m, fmt.Sprintf("this peer proposes the world; last time %s declined: not now", short(p.node.ID())))
	stop()
	if err := p.node.Close(); err != nil {
		t.Fatal(err)
	}
	awaitReason(t, m, fmt.Sprintf("%s has announced but cannot be reached: connection refused", short(p.node.ID())))
}
