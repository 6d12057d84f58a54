package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

const (
	controlProtocol protocol.ID = "/peermesh/control/3"
	laneProtocol    protocol.ID = "/peermesh/lane/1"

	// helloTimeout bounds the first bytes of a stream of a world.
	helloTimeout = 5 * time.Second
	// holdTimeout bounds how long a stream waits for the commit of the epoch that
	// it belongs to, and which we have acknowledged.
	holdTimeout = promiseHold
	// maxHeld bounds the streams that wait so.
	maxHeld = MaxWorld
)

// A hello begins every stream of a world: which world, and whose stream.
type hello struct {
	Epoch  uint64
	Digest digest
	From   uint32 // rank
}

const helloSize = 8 + len(digest{}) + 4

func (h hello) append(p []byte) []byte {
	return binary.LittleEndian.AppendUint32(appendEpochDigest(p, h.Epoch, h.Digest), h.From)
}

func readHello(r io.Reader) (hello, error) {
	p, err := readFull(r, helloSize)
	if err != nil {
		return hello{}, fmt.Errorf("mesh: hello: %w", err)
	}
	s := scanner{p: p}
	return hello{Epoch: s.uint64(), Digest: digest(s.bytes(len(digest{}))), From: s.uint32()}, s.end()
}

// admit reads the hello of a stream and finds its world. It returns no link if
// the stream was reset. A deadline stands until the caller lifts it.
func (m *Mesh) admit(s *node.Stream) (*World, *link) {
	s.SetDeadline(time.Now().Add(m.pace.patient(helloTimeout)))
	h, err := readHello(s)
	if err != nil {
		m.drop(s, err)
		return nil, nil
	}
	w := m.worldOf(h, s.Peer())
	s.SetDeadline(time.Now().Add(m.pace.patient(helloTimeout)))
	if w == nil {
		s.Reset(fmt.Errorf("mesh: epoch %d: %w", h.Epoch, node.ErrStale))
		return nil, nil
	}
	if w.roster.rank(s.Peer()) != int(h.From) {
		m.drop(s, fmt.Errorf("mesh: %s claims rank %d", s.Peer(), h.From))
		return nil, nil
	}
	l := w.to(int(h.From))
	if l == nil {
		m.drop(s, fmt.Errorf("mesh: no link to rank %d", h.From))
		return nil, nil
	}
	return w, l
}

// worldOf is the current world if the hello names it. It waits for one that is
// promised but not committed, because members hear of a commit at different
// times; and if another than the proposer hears of it from a fellow member, who has
// committed or would have no stream to open, that will do: the proposer may have
// died when only some had its verdict. Otherwise it is nil.
func (m *Mesh) worldOf(h hello, from peer.ID) *World {
	ctx, cancel := context.WithTimeout(m.ctx, crowd(holdTimeout, m.config.World))
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	held := false
	defer func() {
		if held {
			m.held--
		}
	}()
	for {
		if w := m.current; w != nil && w.roster.Epoch == h.Epoch && w.roster.Digest == h.Digest {
			return w
		}
		if m.promise == nil || m.promise.roster.Digest != h.Digest || !held && m.held >= maxHeld {
			return nil
		}
		if p := m.promise; m.promiser != m.self.ID && p.roster.rank(from) >= 0 {
			m.mu.Unlock()
			m.commit(p, false)
			m.mu.Lock()
			continue
		}
		if !held {
			held = true
			m.held++
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		m.mu.Lock()
		if ctx.Err() != nil {
			return nil
		}
	}
}
