package mesh

import (
	"bufio"
	"slices"
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
		n, err := node.Start(t.Context(), node.Config{Listen: []string{loopback}, Transports: []string{node.TCP}})
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
	s := speak(p.t, p.node, to, meetProtocol, presence{Asks: true}.append(appendBlocks(nil, [][]byte{p.self.raw})))
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
		if _, err := readPresence(r, defaultName); err != nil {
			p.t.Fatal(err)
		}
	}
	return a
}

// proposal is a world of the puppet and another that it has met.
func (p *puppet) proposal(epoch uint64, last *past, with peer.ID) *proposal {
	mind := &memory{Promised: epoch, Last: last}
	q := &proposal{mind: mind, members: []*announcement{p.self, p.seen[with]}}
	slices.SortFunc(q.members, func(a, b *announcement) int { return compareID(a.ID, b.ID) })
	q.roster = newRoster(defaultName, epoch, mind.base(), []peer.ID{p.self.ID, with})
	return q
}

// propose sends a proposal, and returns the stream for the verdict.
func (p *puppet) propose(to *node.Node, q *proposal) (*node.Stream, *answer) {
	p.t.Helper()
	s := speak(p.t, p.node, to, formProtocol, q.append(nil))
	a, _, err := readVote(s, defaultName)
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
	q := p.proposal(1, nil, n.ID())
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

// await waits until something holds of a mesh.
func await(t *testing.T, m *Mesh, what func() bool) {
	t.Helper()
	for {
		m.mu.Lock()
		ok := what()
		m.mu.Unlock()
		if ok {
			return
		}
		pause(t, time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("the test has ended")
		}
	}
}
