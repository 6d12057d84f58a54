package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
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

// A member that never beats is silent, though its connection stands.
func TestSilentPuppet(t *testing.T) {
	_, w, _, control := proposedWorld(t, Config{Silence: minSilence})
	if err := ended(w, 0, ErrSilent); err != nil {
		t.Error(err)
	}
	// It is told so, in case it is only slow.
	e := readEnd(t, control, w.roster)
	if e.Rank != 0 || !errors.Is(e, ErrSilent) {
		t.Errorf("told %v", e)
	}
}

// readEnd reads control frames up to an end.
func readEnd(t *testing.T, s io.Reader, r roster) *EndedError {
	t.Helper()
	kind, p := readFrame(t, s)
	for kind == frameBeat {
		kind, p = readFrame(t, s)
	}
	if kind != frameEnd {
		t.Fatalf("frame of kind %d, want an end", kind)
	}
	e, err := decodeEnd(p, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func readFrame(t *testing.T, s io.Reader) (kind uint8, payload []byte) {
	t.Helper()
	head, err := readFull(s, controlHead)
	if err != nil {
		t.Fatal(err)
	}
	payload, err = readFull(s, int(binary.LittleEndian.Uint16(head[1:])))
	if err != nil {
		t.Fatal(err)
	}
	return head[0], payload
}

// Traffic on a lane is a sign of life, even if it keeps heartbeats waiting.
func TestLaneTrafficIsLife(t *testing.T) {
	_, w, p, _ := proposedWorld(t, Config{Silence: 2 * minSilence})
	head := binary.LittleEndian.AppendUint64(hello{Epoch: 1, Digest: w.roster.Digest, From: 0}.append(nil), 5)
	const size = 30
	s := speak(t, p.node, nodeOf(w), laneProtocol, appendHead(head, tagged(0), size))
	defer s.Reset(node.ErrClosed)
	begin, got := time.Now(), 0
	beat := time.NewTicker(minSilence / 4)
	defer beat.Stop()
	go func() {
		for range size {
			<-beat.C
			if _, err := s.Write([]byte{1}); err != nil {
				return
			}
		}
	}()
	err := w.Recv(t.Context(), 0, 5, acceptAny, func(p []byte) error { got += len(p); return nil })
	if err != nil || got != size || time.Since(begin) < 3*minSilence {
		t.Errorf("%d bytes in %s: %v", got, time.Since(begin), err)
	}
	if err := ended(w, 0, ErrSilent); err != nil { // and its absence is not
		t.Error(err)
	}
}

func nodeOf(w *World) *node.Node { return w.node }

// An end says what the first rank to know says, and is sent on to nobody twice.
func TestEndOnTheWire(t *testing.T) {
	_, w, p, control := proposedWorld(t, Config{})
	if err := w.Signal(0, 3, []byte("last words")); err != nil {
		t.Fatal(err)
	}
	w.End(errors.New("a tensor went missing"))
	kind, payload := readFrame(t, control)
	for kind == frameBeat {
		kind, payload = readFrame(t, control)
	}
	if kind != frameSignal || string(payload) != "\x03\x00\x00\x00last words" {
		t.Errorf("before the end: frame of kind %d, %q", kind, payload)
	}
	if e := readEnd(t, control, w.roster); e.Rank != 1 || e.Err.Error() != "a tensor went missing" {
		t.Errorf("told %v", e)
	}
	// Until we say that we know, it keeps the stream.
	select {
	case <-w.done:
		t.Error("gone before we knew")
	default:
	}
	p.say(control, endFrame(&EndedError{Epoch: 1, Rank: 1, Err: errors.New("as you said")})...)
	<-w.done
	for {
		if _, err := control.Read(make([]byte, 64)); err != nil {
			if !errors.Is(err, node.ErrClosed) {
				t.Errorf("after the end: %v", err)
			}
			break
		}
	}
}

// A rank that leaves waits for its lanes to be taken, and for a goodbye.
func TestLeaveOnTheWire(t *testing.T) {
	m, w, p, control := proposedWorld(t, Config{})
	lanes := make(chan *node.Stream, 1)
	stop, err := p.node.Handle(t.Context(), laneProtocol, func(s *node.Stream) { lanes <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := w.Send(t.Context(), 0, 9, tagged(4), 3, whole([]byte("abc"))); err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- m.Leave(t.Context()) }()
	kind, payload := readFrame(t, control)
	for kind == frameBeat {
		kind, payload = readFrame(t, control)
	}
	if kind != frameLeave || binary.LittleEndian.Uint32(payload) != 1 {
		t.Errorf("frame of kind %d, %x", kind, payload)
	}
	s := <-lanes
	got, err := io.ReadAll(s) // the lane has an end
	want := appendHead(binary.LittleEndian.AppendUint64(w.hello().append(nil), 9), tagged(4), 3)
	if err != nil || string(got) != string(want)+"abc" {
		t.Errorf("the lane had %q, %v", got, err)
	}
	p.say(control, controlFrame(frameGoodbye, nil)...)
	select {
	case err := <-left:
		t.Errorf("left before its message was taken: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	s.Close()
	if err := <-left; err != nil {
		t.Error(err)
	}
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
