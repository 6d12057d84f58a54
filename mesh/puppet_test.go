package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// A puppet is a peer whose every byte the test decides: a node that announces
// itself, and plays the protocols by hand.
type puppet struct {
	t    *testing.T
	node *node.Node
	self *announcement
	seen map[peer.ID]*announcement
}

// newPuppet announces itself for a world of two. Its ID is lower or higher than
// another's, as wanted: the lower one proposes.
func newPuppet(t *testing.T, than peer.ID, lower bool) *puppet {
	t.Helper()
	for {
		n, err := node.Start(t.Context(), node.Config{Listen: []string{loopback}})
		if err != nil {
			t.Fatal(err)
		}
		if (compareID(n.ID(), than) < 0) != lower {
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Cleanup(func() { n.Close() })
		a := &announcement{ID: n.ID(), Version: protocolVersion, Mesh: defaultName, World: 2,
			Since: time.Now(), Expires: time.Now().Add(lifetime), Addrs: n.Host().Addrs()}
		if err := a.seal(n.Host().Peerstore().PrivKey(n.ID())); err != nil {
			t.Fatal(err)
		}
		if a, err = openAnnouncement(a.raw); err != nil {
			t.Fatal(err)
		}
		return &puppet{t: t, node: n, self: a, seen: make(map[peer.ID]*announcement)}
	}
}

// meet introduces the puppet to a node, and returns the answer.
func (p *puppet) meet(to *node.Node) *answer {
	p.t.Helper()
	s := speak(p.t, p.node, to, meetProtocol, appendBlocks(nil, [][]byte{p.self.raw}))
	defer s.Close()
	r := bufio.NewReader(s)
	a, err := readAnswer(r)
	if err != nil {
		p.t.Fatal(err)
	}
	if a.Code == answerYes {
		blocks, err := readBlocks(r, maxKnown, maxAnnouncement)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, raw := range blocks {
			b, err := openAnnouncement(raw)
			if err != nil {
				p.t.Fatal(err)
			}
			p.seen[b.ID] = b
		}
	}
	return a
}

// proposal is a world of the puppet and another that it has met.
func (p *puppet) proposal(epoch uint64, base digest, with peer.ID) *proposal {
	q := &proposal{members: []*announcement{p.self, p.seen[with]}}
	slices.SortFunc(q.members, func(a, b *announcement) int { return compareID(a.ID, b.ID) })
	q.roster = newRoster(defaultName, epoch, base, []peer.ID{p.self.ID, with})
	return q
}

// propose sends a proposal, and returns the stream for the verdict.
func (p *puppet) propose(to *node.Node, q *proposal) (*node.Stream, *answer) {
	p.t.Helper()
	s := speak(p.t, p.node, to, formProtocol, q.append(nil))
	a, err := readAnswer(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return s, a
}

// linkTo opens the control stream of a world to its other member.
func (p *puppet) linkTo(to *node.Node, r roster) *node.Stream {
	p.t.Helper()
	h := hello{Epoch: r.Epoch, Digest: r.Digest, From: uint32(r.rank(p.node.ID()))}
	return speak(p.t, p.node, to, controlProtocol, h.append(nil))
}

func (p *puppet) say(s *node.Stream, b ...byte) {
	p.t.Helper()
	if _, err := s.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// proposedWorld takes a mesh of two into a world with a puppet that proposes.
func proposedWorld(t *testing.T, c Config) (*Mesh, *World, *puppet, *node.Stream) {
	t.Helper()
	n := startNode(t, loopback)
	c.World = 2
	m := join(t, n, c)
	p := newPuppet(t, n.ID(), true)
	p.meet(n)
	q := p.proposal(1, digest{}, n.ID())
	s, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("%+v", a)
	}
	p.say(s, verdictCommit)
	control := p.linkTo(n, q.roster)
	if h, err := readHello(control); err != nil || h.Digest != q.roster.Digest || h.From != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	w, err := m.World(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Reset(node.ErrClosed) })
	return m, w, p, control
}

// A stream of an epoch that was promised waits for the commit; afterwards it is
// taken, or refused if there was none.
func TestStreamsWaitForTheCommit(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), true)
	p.meet(n)
	q := p.proposal(1, digest{}, n.ID())

	aborted, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("%+v", a)
	}
	early := p.linkTo(n, q.roster)
	awaitHeld(t, m, 1)
	p.say(aborted, verdictAbort)
	if _, err := readHello(early); !errors.Is(err, node.ErrStale) {
		t.Errorf("a stream of an epoch that was aborted: %v", err)
	}
	early.Reset(node.ErrClosed)

	gone, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("second try: %+v", a)
	}
	early = p.linkTo(n, q.roster)
	awaitHeld(t, m, 1)
	gone.Reset(node.ErrClosed) // the proposer is gone
	if _, err := readHello(early); !errors.Is(err, node.ErrStale) {
		t.Errorf("a stream of an epoch whose proposer is gone: %v", err)
	}
	early.Reset(node.ErrClosed)

	s, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("third try: %+v", a)
	}
	early = p.linkTo(n, q.roster)
	awaitHeld(t, m, 1)
	p.say(s, verdictCommit)
	if h, err := readHello(early); err != nil || h.Digest != q.roster.Digest {
		t.Errorf("a stream of an epoch that was committed: %+v, %v", h, err)
	}
	early.Reset(node.ErrClosed)
	awaitHeld(t, m, 0)
}

// awaitHeld waits until a number of streams wait for a commit.
func awaitHeld(t *testing.T, m *Mesh, want int) {
	t.Helper()
	for {
		m.mu.Lock()
		held := m.held
		m.mu.Unlock()
		if held == want {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		<-ctx.Done()
		cancel()
		if t.Context().Err() != nil {
			t.Fatalf("%d streams wait, want %d", held, want)
		}
	}
}

// What a member says to proposals that it cannot take, over the wire.
func TestProposalsDeclined(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), true)
	p.meet(n)
	q := p.proposal(1, digest{}, n.ID())
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
	declined(declineBusy, q)
	p.say(promised, verdictAbort)
	if _, err := io.ReadAll(promised); err != nil { // until the promise is taken back
		t.Fatal(err)
	}
	alone := &proposal{members: []*announcement{p.self}, roster: newRoster(defaultName, 1, digest{}, []peer.ID{p.self.ID})}
	declined(refuseSize, alone)
	other := p.proposal(1, digest{}, n.ID())
	other.members[1] = newAnnouncement(t, defaultName, 3)
	if compareID(other.members[1].ID, p.self.ID) > 0 {
		declined(refuseName, other)
	}
	s, a := p.propose(n, q)
	if a.Code != answerYes {
		t.Fatalf("after the abort: %+v", a)
	}
	p.say(s, verdictCommit)
	link := p.linkTo(n, q.roster)
	if _, err := readHello(link); err != nil {
		t.Fatal(err)
	}
	declined(declineWorld, p.proposal(2, q.roster.Digest, n.ID()))
	if a := p.meet(n); a.Code != answerYes || a.Epoch != 1 || a.Base != q.roster.Digest {
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
	declined(declineIdle, p.proposal(2, q.roster.Digest, n.ID())) // nobody has asked for the next world
}

// A member that was to be linked but goes away before is named too.
func TestAbsent(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), false) // the higher one: our side opens the control stream
	stop, err := p.node.Handle(t.Context(), formProtocol, func(s *node.Stream) {
		defer s.Close()
		q, err := readProposal(s, s.Peer(), openAnnouncement)
		if err != nil || q.roster.Epoch != 1 || len(q.members) != 2 {
			t.Errorf("proposal %+v, %v", q, err)
		}
		p.say(s, (&answer{}).append(nil)...)
		if verdict, err := readFull(s, 1); err != nil || verdict[0] != verdictCommit {
			t.Errorf("verdict %v, %v", verdict, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	p.meet(n)
	w, err := m.World(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The puppet knows no control protocol.
	if err := ended(w, 1, ErrAbsent); err != nil {
		t.Error(err)
	}
	if !strings.Contains(context.Cause(w.Context()).Error(), "does not speak") {
		t.Errorf("%v", context.Cause(w.Context()))
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
		q, err := readProposal(s, s.Peer(), openAnnouncement)
		if err != nil {
			t.Error(err)
			return
		}
		tries++
		if tries == 1 {
			p.say(s, (&answer{Code: declineStale, Epoch: 7, Base: digest{7}, Text: "epoch 1 is past"}).append(nil)...)
			return
		}
		if q.roster.Epoch != 8 || q.roster.Base != (digest{7}) {
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
