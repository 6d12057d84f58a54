package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

const (
	formProtocol protocol.ID = "/peermesh/form/1"

	// voteTimeout bounds a member's answer to a proposal.
	voteTimeout = 3 * time.Second
	// promiseHold bounds how long a member waits, after it has acknowledged, to
	// hear whether the others did. It is well over voteTimeout, which bounds how
	// long a live proposer takes.
	promiseHold = 10 * time.Second
	// maxEpoch keeps arithmetic on epochs from ever wrapping.
	maxEpoch = 1 << 62

	verdictAbort, verdictCommit = 0, 1
)

// A proposal is a roster and the announcements of its members, which prove that
// each of them wants it, and say where each is.
type proposal struct {
	roster  roster
	members []*announcement
}

func (p *proposal) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.roster.Epoch)
	b = append(b, p.roster.Base[:]...)
	var blocks [][]byte
	for _, a := range p.members {
		blocks = append(blocks, a.raw)
	}
	return appendBlocks(b, blocks)
}

// readProposal checks everything that can be checked without knowing our own
// state.
func readProposal(r io.Reader, from peer.ID, open func([]byte) (*announcement, error)) (*proposal, error) {
	head, err := readFull(r, 8+len(digest{}))
	if err != nil {
		return nil, fmt.Errorf("mesh: proposal: %w", err)
	}
	s := scanner{p: head}
	epoch, base := s.uint64(), digest(s.bytes(len(digest{})))
	if epoch == 0 || epoch > maxEpoch {
		return nil, fmt.Errorf("mesh: proposal of epoch %d", epoch)
	}
	blocks, err := readBlocks(r, MaxWorld, maxAnnouncement)
	if err != nil {
		return nil, fmt.Errorf("mesh: proposal: %w", err)
	}
	p := &proposal{}
	var ids []peer.ID
	for i, raw := range blocks {
		a, err := open(raw)
		if err != nil {
			return nil, fmt.Errorf("mesh: proposal: %w", err)
		}
		if i > 0 && compareID(ids[i-1], a.ID) >= 0 {
			return nil, errors.New("mesh: proposal: members out of order")
		}
		ids = append(ids, a.ID)
		p.members = append(p.members, a)
	}
	if len(ids) == 0 || ids[0] != from {
		return nil, fmt.Errorf("mesh: proposal by %s, which is not the lowest of its members", from)
	}
	p.roster = newRoster(p.members[0].Mesh, epoch, base, ids)
	return p, nil
}

// begin proposes a world, and promises to ourselves to take part. The lock is
// held.
func (m *Mesh) begin(members []peer.ID) {
	p := &proposal{roster: newRoster(m.config.Name, m.epoch+1, m.base, members)}
	for _, id := range p.roster.Members {
		p.members = append(p.members, m.view[id])
	}
	m.promise = p
	m.proposing = true
	m.wg.Go(func() { m.propose(p) })
}

// A vote is one member's answer to our proposal.
type vote struct {
	id     peer.ID
	stream *node.Stream // open for the verdict; nil without an acknowledgement
	no     *answer
	err    error
}

// propose asks every member, and commits when all have acknowledged. The
// promise to ourselves was made by the caller.
func (m *Mesh) propose(p *proposal) {
	votes := make(chan vote, len(p.members))
	asked := 0
	for _, a := range p.members {
		if a.ID != m.node.ID() {
			asked++
			m.wg.Go(func() { votes <- m.ask(p, a) })
		}
	}
	all := true
	var streams []*node.Stream
	declined := ""
	for range asked {
		v := <-votes
		if v.stream != nil {
			streams = append(streams, v.stream)
			continue
		}
		all = false
		declined = m.countNo(v)
	}
	if all && !m.commit(p) {
		all, declined = false, "it was overtaken by another epoch, or by the end of this peer"
	}
	verdict := []byte{verdictAbort}
	if all {
		verdict[0] = verdictCommit
	}
	for _, s := range streams {
		if _, err := s.Write(verdict); err != nil { // its world will not link up, and end for that
			log.Debugw("verdict not delivered", "peer", s.Peer(), "err", err)
		}
		s.Close()
	}
	m.proposed(p, declined)
}

// countNo learns from a vote against us, and says it in words.
func (m *Mesh) countNo(v vote) string {
	if v.no != nil {
		m.learnEpoch(v.no)
		return fmt.Sprintf("%s declined: %s", short(v.id), v.no.Text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.contact(v.id)
	c.met, c.trouble, c.next = false, why(v.err), time.Now()
	return fmt.Sprintf("%s did not answer: %s", short(v.id), c.trouble)
}

// proposed ends our attempt. After a failure the next one waits a moment, of a
// random length, so that two proposers do not stay in step.
func (m *Mesh) proposed(p *proposal, declined string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proposing = false
	m.declined = declined
	if declined != "" {
		m.release(p)
		m.notBefore = time.Now().Add(50*time.Millisecond + rand.N(200*time.Millisecond))
	}
	m.poke()
}

func (m *Mesh) ask(p *proposal, member *announcement) vote {
	v := vote{id: member.ID}
	ctx, cancel := context.WithTimeout(m.ctx, voteTimeout)
	defer cancel()
	if v.err = m.node.Connect(ctx, peer.AddrInfo{ID: member.ID, Addrs: member.Addrs}); v.err != nil {
		return v
	}
	s, err := m.node.Open(ctx, member.ID, formProtocol)
	if err != nil {
		v.err = err
		return v
	}
	if _, v.err = s.Write(p.append(nil)); v.err == nil {
		v.no, v.err = readAnswer(s)
	}
	switch {
	case v.err != nil:
		s.Reset(v.err)
	case v.no.Code != answerYes:
		s.Close()
	default:
		v.no = nil
		s.Bind(m.ctx) // for the verdict it outlives this call
		s.SetDeadline(time.Now().Add(promiseHold))
		v.stream = s
	}
	return v
}

// serveForm is a member's side: answer, and if that was yes, hear the verdict.
func (m *Mesh) serveForm(s *node.Stream) {
	s.SetDeadline(time.Now().Add(voteTimeout))
	r := bufio.NewReader(s)
	p, err := readProposal(r, s.Peer(), m.open)
	if err != nil {
		m.drop(s, err)
		return
	}
	reply := m.consider(p)
	if _, err := s.Write(reply.append(nil)); err != nil || reply.Code != answerYes {
		m.mu.Lock()
		m.release(p)
		m.mu.Unlock()
		s.Close()
		return
	}
	s.SetDeadline(time.Now().Add(promiseHold))
	verdict, err := readFull(r, 1)
	if err == nil && verdict[0] == verdictCommit {
		m.commit(p)
	} else {
		m.mu.Lock()
		m.release(p) // aborted, or the proposer is gone
		m.mu.Unlock()
	}
	s.Close()
}

// consider answers a proposal; yes is a promise to take part in no other until
// this one's verdict.
func (m *Mesh) consider(p *proposal) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &answer{Epoch: m.epoch, Base: m.base}
	no := func(code uint8, format string, args ...any) *answer {
		reply.Code, reply.Text = code, fmt.Sprintf(format, args...)
		return reply
	}
	for _, a := range p.members {
		if !m.ours(a) {
			return no(refuseName, "%s does not belong to mesh %q and a world of %d", short(a.ID), m.config.Name, m.config.World)
		}
	}
	switch {
	case len(p.members) != m.config.World || p.roster.rank(m.self.ID) < 0:
		return no(refuseSize, "that is no world of %d with %s", m.config.World, short(m.self.ID))
	case m.fatal != nil:
		return no(declineIdle, "it is closing")
	case m.current != nil && m.current.ctx.Err() == nil:
		return no(declineWorld, "it is in world %d", m.epoch)
	case !m.forming():
		return no(declineIdle, "it does not ask for a world")
	case p.roster.Epoch <= m.epoch:
		return no(declineStale, "epoch %d is past", p.roster.Epoch)
	case p.roster.Epoch == m.epoch+1 && m.base != digest{} && p.roster.Base != m.base:
		// Of a later epoch's base we know nothing: we missed that world.
		return no(declineStale, "the proposal rests on another roster")
	case m.promise != nil:
		return no(declineBusy, "it has acknowledged another proposal, by %s", short(m.promise.roster.Members[0]))
	}
	m.promise = p
	return reply
}

// release takes back the promise to a proposal. The lock is held.
func (m *Mesh) release(p *proposal) {
	if m.promise == p {
		m.promise = nil
		m.announceChange()
	}
}

// learnEpoch takes note of an epoch that others have been through without us.
func (m *Mesh) learnEpoch(a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A promise to another proposer holds; our own proposal has just failed, or
	// will not be committed.
	free := m.promise == nil || m.proposing
	if a.Epoch > m.epoch && a.Epoch < maxEpoch && free && m.forming() {
		m.epoch, m.base = a.Epoch, a.Base
	}
}
