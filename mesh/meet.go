package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

const (
	meetProtocol protocol.ID = "/peermesh/meet/1"

	// meetTimeout bounds one meeting of few peers, dialling included: see pace.
	meetTimeout = 5 * time.Second
	// meetEvery is how often peers without a world meet again, or meetShare for
	// each peer that is known if that is more.
	meetEvery, meetShare = time.Second, 200 * time.Millisecond
	// maxMeetings bounds the meetings that one peer begins at the same time.
	maxMeetings = 8
	// deference is how long a peer waits to be met by one that came after it, and
	// so has more to learn. Without it the two would dial each other at once.
	deference = 300 * time.Millisecond
	// retryFirst and retryMost bound the pause after a meeting that failed. The
	// bound is short, because a world waits for peers that start late.
	retryFirst, retryMost = 50 * time.Millisecond, 500 * time.Millisecond
)

// meet exchanges announcements with a peer and records how that went.
func (m *Mesh) meet(who peer.AddrInfo) {
	ctx, cancel := context.WithTimeout(m.ctx, m.pace.timeout())
	defer cancel()
	begin := time.Now()
	no, err := m.exchange(ctx, who)
	if err == nil {
		m.pace.took(time.Since(begin))
	}
	switch {
	case err != nil || no == nil:
	case no.final():
		m.refused(&RefusedError{Peer: who.ID, Reason: no.Text, Err: refusals[no.Code]})
		err = fmt.Errorf("mesh: refused: %s", no.Text)
	default:
		err = fmt.Errorf("mesh: declined: %s", no.Text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.contact(who.ID)
	c.busy = false
	if err != nil {
		c.met, c.asks = false, false
		c.trouble = why(err)
		m.turnedAway(who.ID, err)
		if errors.Is(err, context.DeadlineExceeded) {
			m.sever(who.ID)
		}
		c.pause = min(max(2*c.pause, retryFirst), retryMost)
		c.next = time.Now().Add(c.pause)
	}
	m.poke()
}

// why is an error's part that a person can act on.
func why(err error) string {
	var dial *node.DialError
	switch {
	case errors.As(err, &dial):
		return dial.Reason()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}

// exchange is the dialler's side of the meet protocol. The answer is nil or one
// that is not yes.
func (m *Mesh) exchange(ctx context.Context, who peer.AddrInfo) (*answer, error) {
	if err := m.node.Connect(ctx, who); err != nil {
		return nil, err
	}
	s, err := m.node.Open(ctx, who.ID, meetProtocol)
	if err != nil {
		return nil, err
	}
	if _, err := s.Write(m.greeting(nil)); err != nil {
		s.Reset(err)
		return nil, err
	}
	r := bufio.NewReader(s)
	a, err := readAnswer(r)
	if err != nil {
		s.Reset(err)
		return nil, err
	}
	if a.Code != answerYes {
		s.Close()
		return a, nil
	}
	blocks, err := readBlocks(r, maxKnown, maxAnnouncement)
	if err != nil {
		s.Reset(err)
		return nil, err
	}
	first, err := m.firstAnnouncement(blocks, who.ID)
	if err == nil && !first.Expires.After(m.config.Clock()) {
		err = errExpired
	}
	if err != nil {
		s.Reset(err)
		return nil, err
	}
	p, err := readPresence(r, first.Mesh)
	if err != nil {
		s.Reset(err)
		return nil, err
	}
	s.Close()
	m.introduced(first, blocks[1:])
	m.present(first.ID, p)
	return nil, nil
}

// serveMeet is the other side.
func (m *Mesh) serveMeet(s *node.Stream) {
	s.SetDeadline(time.Now().Add(m.pace.timeout()))
	r := bufio.NewReader(s)
	blocks, err := readBlocks(r, maxKnown, maxAnnouncement)
	if err != nil {
		m.drop(s, err)
		return
	}
	a, err := m.firstAnnouncement(blocks, s.Peer())
	if err != nil {
		m.drop(s, err)
		return
	}
	reply := m.judge(a)
	p := reply.append(nil)
	if reply.Code != answerYes {
		m.logRefusal(a.ID, reply.Text)
	} else {
		theirs, err := readPresence(r, a.Mesh)
		if err != nil {
			m.drop(s, err)
			return
		}
		m.introduced(a, blocks[1:])
		m.present(a.ID, theirs)
		p = m.greeting(p)
	}
	if _, err := s.Write(p); err != nil {
		m.drop(s, err)
		return
	}
	s.Close()
}

// A presence is what a peer does at the moment, and the last world it knows.
type presence struct {
	Asks bool   // for a world
	In   uint64 // the epoch of a world that goes on
	Last *past
}

func (p presence) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(appendFlag(b, p.Asks), p.In)
	return p.Last.append(b)
}

func readPresence(r io.Reader, mesh string) (p presence, err error) {
	if p.Asks, err = readFlag(r); err != nil {
		return p, err
	}
	in, err := readFull(r, 8)
	if err != nil {
		return p, fmt.Errorf("mesh: presence: %w", err)
	}
	p.In = binary.LittleEndian.Uint64(in)
	p.Last, err = readPast(r, mesh)
	return p, err
}

// presenceSize is room enough for most presences, in bytes.
const presenceSize = 512

// greeting is whom we know, and what we do.
func (m *Mesh) greeting(b []byte) []byte {
	known := m.known()
	size := 0
	for _, raw := range known {
		size += 2 + len(raw)
	}
	b = appendBlocks(slices.Grow(b, size+presenceSize), known)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := presence{Asks: m.forming(), Last: m.memory.Last}
	if m.current != nil && m.current.ctx.Err() == nil {
		p.In = m.current.Epoch()
	}
	return p.append(b)
}

// present takes note of what a peer does that we have just met.
func (m *Mesh) present(id peer.ID, p presence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.contact(id)
	c.asks, c.world = p.Asks, p.In
	m.learnPast(id, p.Last)
	m.poke()
}

// sever closes the connection to a peer that does not answer. If packets to it
// were lost for a while, a new one is there long before the old one recovers. The
// lock is held.
func (m *Mesh) sever(id peer.ID) {
	if w := m.current; w != nil && !w.finished() && w.roster.rank(id) >= 0 {
		return
	}
	m.wg.Go(func() {
		if err := m.node.Host().Network().ClosePeer(id); err != nil {
			log.Debugw("connection not closed", "peer", id, "err", err)
		}
	})
}

// firstAnnouncement is that of the peer which sent the blocks: it must be there,
// and come from nobody else.
func (m *Mesh) firstAnnouncement(blocks [][]byte, from peer.ID) (*announcement, error) {
	if len(blocks) == 0 {
		return nil, errors.New("mesh: no announcement")
	}
	a, err := openAnnouncement(blocks[0])
	if err != nil {
		return nil, err
	}
	if a.ID != from {
		return nil, fmt.Errorf("mesh: %s announces itself as %s", from, a.ID)
	}
	return a, nil
}

// introduced takes in a peer that we have met, and whom it knows. Announcements
// that are forged, out of date or of another mesh are passed over: the peer that
// brought them may not know.
func (m *Mesh) introduced(who *announcement, others [][]byte) {
	m.learning.Lock() // peers met at the same time bring the same, to be checked once
	for _, raw := range others {
		if a, err := openAnnouncement(raw); err == nil {
			m.learn(a)
		}
	}
	m.learning.Unlock()
	m.learn(who)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	c := m.contact(who.ID)
	c.met, c.trouble, c.pause = true, "", 0
	c.next = now.Add(max(meetEvery, time.Duration(len(m.view))*meetShare))
	if !m.metAny {
		m.metAny = true
		m.spread = now.Add(m.unhurried(announceSoon))
	}
	m.poke()
}

// learn adds an announcement to the view, if it is of this mesh.
func (m *Mesh) learn(a *announcement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ours(a) && m.view.add(a) {
		m.viewChanged()
		m.poke()
	}
}

// ours reports whether a peer could be a member.
func (m *Mesh) ours(a *announcement) bool {
	return a.Version == protocolVersion && a.Mesh == m.config.Name && a.World == m.config.World && slices.Equal(a.Terms, m.config.Terms) &&
		a.Expires.After(m.config.Clock())
}

// known lists the announcements to send, our own first.
func (m *Mesh) known() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	blocks := [][]byte{m.self.raw}
	for id, a := range m.view {
		if id != m.self.ID && len(blocks) < maxKnown {
			blocks = append(blocks, a.raw)
		}
	}
	return blocks
}

// drop ends a stream whose other side broke the protocol, or broke off.
func (m *Mesh) drop(s *node.Stream, err error) {
	log.Debugw("dropped a stream", "peer", s.Peer(), "err", err)
	s.Reset(fmt.Errorf("%w: %w", node.ErrViolation, err))
}
