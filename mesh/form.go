package mesh

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

const (
	formProtocol protocol.ID = "/peermesh/form/4"

	// voteTimeout bounds a member's answer to a proposal of a few.
	voteTimeout = 3 * time.Second
	// promiseHold bounds how long a member of a few waits, after it has acknowledged, to
	// hear whether the others did. It is well over voteTimeout, which bounds how
	// long a live proposer takes.
	promiseHold = 5 * time.Second
	// retryShort is the pause after a proposal that failed, and retryLong after one
	// for which there was no quorum; each is half as long again at random, so that
	// two proposers do not stay in step.
	retryShort, retryLong = 50 * time.Millisecond, time.Second

	// Of a commit each member is told whether it has what the world goes on from.
	verdictAbort, verdictCommit, verdictHolds = 0, 1, 2
)

// begin proposes a world, and promises to ourselves to take part. The lock is
// held.
func (m *Mesh) begin(members []peer.ID) {
	epoch := max(m.memory.Promised, m.heard) + 1
	p := &proposal{roster: newRoster(m.config.Name, epoch, m.memory.base(), members)}
	for _, id := range p.roster.Members {
		p.members = append(p.members, m.view[id])
	}
	if err := m.promiseTo(p, m.self.ID); err != nil {
		m.declined = err.Error()
		m.notBefore = time.Now().Add(retryLong)
		return
	}
	p.mind = m.memory.clone()
	m.proposing = true
	m.wg.Go(func() { m.propose(p) })
}

// promiseTo binds us to a proposal, and to no other of its epoch or before. The
// lock is held.
func (m *Mesh) promiseTo(p *proposal, by peer.ID) error {
	if err := m.memory.promise(p.roster); err != nil {
		return err
	}
	if err := m.remember(); err != nil {
		return err
	}
	m.promise, m.promiser = p, by
	return nil
}

// A vote is one member's answer to our proposal.
type vote struct {
	id     peer.ID
	stream *node.Stream // open for the verdict; nil without an acknowledgement
	no     *answer
	mind   *memory // nil if the answer comes without
	err    error
}

// propose asks every member, and commits when all have acknowledged and what they
// remember allows it. The promise to ourselves was made by the caller.
func (m *Mesh) propose(p *proposal) {
	votes := make(chan vote, len(p.members))
	asked, raw := 0, p.append(nil)
	for _, a := range p.members {
		if a.ID != m.node.ID() {
			asked++
			m.wg.Go(func() { votes <- m.ask(p, raw, a) })
		}
	}
	var streams []*node.Stream
	minds := map[peer.ID]*memory{m.node.ID(): p.mind}
	declined := ""
	for range asked {
		v := <-votes
		if v.stream != nil {
			streams = append(streams, v.stream)
			minds[v.id] = v.mind
		} else {
			declined = m.countNo(v)
		}
	}
	from := bases(minds)
	if declined == "" {
		declined = m.conclude(p, minds, p.mind.holds(from))
	}
	for _, s := range streams {
		verdict := byte(verdictCommit)
		switch {
		case declined != "":
			verdict = verdictAbort
		case minds[s.Peer()].holds(from):
			verdict = verdictHolds
		}
		if _, err := s.Write([]byte{verdict}); err != nil { // if the others link up without it, it hears from them
			log.Debugw("verdict not delivered", "peer", s.Peer(), "err", err)
		}
		s.Close()
	}
	m.proposed(p, declined)
}

// conclude commits what all have acknowledged, or says why not. The caller says whether
// we have what the world goes on from.
func (m *Mesh) conclude(p *proposal, minds map[peer.ID]*memory, holds bool) string {
	m.mu.Lock()
	behind := false
	for id, mind := range minds {
		if mind.epoch() > p.mind.epoch() {
			behind = true
			m.learnMind(id, mind)
		}
	}
	m.mu.Unlock()
	if behind {
		return "the others knew a later world"
	}
	if m.config.Quorum == Majority {
		if err := allows(minds); err != nil {
			return err.Error()
		}
	}
	if !m.commit(p, holds) {
		return "it was overtaken by another epoch, or by the end of this peer"
	}
	return ""
}

// countNo learns from a vote against us, and says it in words.
func (m *Mesh) countNo(v vote) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.contact(v.id)
	if v.no == nil {
		c.met, c.asks, c.trouble, c.next = false, false, why(v.err), time.Now()
		return fmt.Sprintf("%s did not answer: %s", short(v.id), c.trouble)
	}
	switch v.no.Code {
	case declineWorld, declineIdle:
		c.asks = false
	case declineStale:
		m.hearEpoch(v.id, v.no.Epoch)
		if v.mind != nil {
			m.learnMind(v.id, v.mind)
		}
	}
	return fmt.Sprintf("%s declined: %s", short(v.id), v.no.Text)
}

// proposed ends our attempt.
func (m *Mesh) proposed(p *proposal, declined string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proposing = false
	m.declined = declined
	if declined != "" {
		m.abort(p)
		pause := retryShort
		if m.attempts++; m.attempts > 8 {
			pause = retryLong
		}
		m.notBefore = time.Now().Add(pause + rand.N(2*pause))
	}
	m.poke()
}

// ask puts a proposal, which is raw on the wire, to a member.
func (m *Mesh) ask(p *proposal, raw []byte, member *announcement) vote {
	v := vote{id: member.ID}
	ctx, cancel := context.WithTimeout(m.ctx, crowd(voteTimeout, len(p.members)))
	defer cancel()
	if v.err = m.node.Connect(ctx, peer.AddrInfo{ID: member.ID, Addrs: member.Addrs}); v.err != nil {
		return v
	}
	s, err := m.node.Open(ctx, member.ID, formProtocol)
	if err != nil {
		v.err = err
		return v
	}
	var reply *answer
	if _, v.err = s.Write(raw); v.err == nil {
		reply, v.mind, v.err = readVote(bufio.NewReader(s), p.members[0].Mesh)
	}
	switch {
	case v.err != nil:
		s.Reset(v.err)
	case reply.Code != answerYes:
		v.no = reply
		s.Close()
	default:
		s.Bind(m.ctx) // for the verdict it outlives this call
		s.SetDeadline(time.Now().Add(crowd(promiseHold, len(p.members))))
		v.stream = s
	}
	return v
}

// serveForm is a member's side: answer, and if that was yes, hear the verdict.
func (m *Mesh) serveForm(s *node.Stream) {
	s.SetDeadline(time.Now().Add(crowd(voteTimeout, m.config.World)))
	r := bufio.NewReader(s)
	p, err := readProposal(r, s.Peer())
	if err != nil {
		m.drop(s, err)
		return
	}
	reply, mind := m.consider(p, s.Peer())
	if _, err := s.Write(appendVote(reply, mind)); err != nil || reply.Code != answerYes {
		m.release(p)
		s.Close()
		return
	}
	s.SetDeadline(time.Now().Add(crowd(promiseHold, len(p.members))))
	verdict, err := readFull(r, 1)
	switch {
	case err != nil || verdict[0] > verdictHolds:
		m.release(p) // the proposer is gone: the others may have committed
	case verdict[0] != verdictAbort:
		m.commit(p, verdict[0] == verdictHolds)
	default:
		m.mu.Lock()
		m.abort(p)
		m.mu.Unlock()
	}
	s.Close()
}

// release takes back the promise to take part in a proposal. What stays is that
// no other of its epoch is acknowledged.
func (m *Mesh) release(p *proposal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.promise == p {
		m.promise = nil
		m.announceChange()
		m.poke()
	}
}

// abort is release once it is certain that nobody has committed the proposal. The
// lock is held.
func (m *Mesh) abort(p *proposal) {
	if m.promise != p {
		return
	}
	m.promise = nil
	m.memory.abort(p.roster.Digest) // on disk it may stay: it is only a caution
	m.announceChange()
}
