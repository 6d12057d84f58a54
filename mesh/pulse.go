package mesh

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	// quietFloor is the shortest silence that makes a peer dead, and quietMost the
	// longest, unless Config.Silence says.
	quietFloor, quietMost = 1600 * time.Millisecond, 30 * time.Second
	beatSize              = 8 + 8 + 4
)

// A pulse learns from heartbeats how long the silence of a living peer may last.
// It knows the round trip and its variation, as TCP's timer does (RFC 6298), and
// by how much beats come late, as a busy peer's or a full link's do. The estimate
// of lateness rises at once and falls slowly: to take a slow peer for dead costs a
// world, to take a dead one for slow a second.
type pulse struct {
	mu        sync.Mutex
	rtt, vary time.Duration // smoothed; zero before the first sample
	late      time.Duration
	theirs    uint64        // the sending time of the last beat, by the sender's clock
	at        time.Duration // when it came, since the world's start
}

// round takes a round trip into account.
func (p *pulse) round(d time.Duration) {
	if p.rtt == 0 {
		p.rtt, p.vary = d, d/2
		return
	}
	p.vary += (max(p.rtt-d, d-p.rtt) - p.vary) / 4
	p.rtt += (d - p.rtt) / 8
}

// gap takes into account that a beat came so long after the last sign of life,
// where every was expected.
func (p *pulse) gap(d, every time.Duration) {
	p.late = max(d-every, p.late-p.late/16, 0)
}

// bound is the longest silence of a peer that lives.
func (p *pulse) bound() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(quietFloor+p.rtt+4*p.vary+4*p.late, quietMost)
}

// beatFrame is the next beat to send: our time, in microseconds, and the time of
// their last beat with how long we have had it, which gives them the round trip.
func (l *link) beatFrame() []byte {
	now := time.Since(l.w.start)
	p := &l.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	b := binary.LittleEndian.AppendUint64(nil, uint64(now.Microseconds()))
	b = binary.LittleEndian.AppendUint64(b, p.theirs)
	return controlFrame(frameBeat, binary.LittleEndian.AppendUint32(b, uint32((now-p.at).Microseconds())))
}

// beaten takes a beat of theirs. Times that cannot be are passed over.
func (l *link) beaten(s *scanner) error {
	sent, echo, held := s.uint64(), s.uint64(), s.uint32()
	if err := s.end(); err != nil {
		return err
	}
	now := time.Since(l.w.start)
	p := &l.pulse
	p.mu.Lock()
	p.gap(now-time.Duration(l.heard.Load()), l.w.beat)
	if trip := now.Microseconds() - int64(echo) - int64(held); echo > 0 && echo < uint64(now.Microseconds()) && trip >= 0 {
		p.round(time.Duration(trip) * time.Microsecond)
	}
	p.theirs, p.at = sent, now
	p.mu.Unlock()
	l.hear()
	return nil
}
