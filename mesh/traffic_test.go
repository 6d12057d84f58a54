package mesh

import (
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestWorldTellsOfItsLinks(t *testing.T) {
	p := form(t, 2, Config{})
	const lanes, size = 3, 100 << 10
	const heads = 200 // at most, on each lane
	each(t, 2, func(rank int) error {
		w := p.worlds[rank]
		for lane := range uint64(lanes) {
			if rank == 0 {
				if err := w.Send(t.Context(), 1, lane, tagged(0), size, whole(noise(size))); err != nil {
					return err
				}
				continue
			}
			accept := func([tagSize]byte, int64) error { return nil }
			if err := w.Recv(t.Context(), 0, lane, accept, func([]byte) error { return nil }); err != nil {
				return err
			}
		}
		sent, received := w.Traffic(1 - rank)
		there, back := sent, received
		if rank == 1 {
			there, back = received, sent
		}
		if there < lanes*size || there > lanes*(size+heads) || back != 0 {
			return fmt.Errorf("rank %d: sent %d, received %d", rank, sent, received)
		}
		if sent, received := w.Traffic(rank); sent != 0 || received != 0 {
			return fmt.Errorf("rank %d to itself: sent %d, received %d", rank, sent, received)
		}
		return nil
	})
	w := p.worlds[0]
	q := &w.links[1].pulse
	q.mu.Lock()
	q.round(1000)
	q.mu.Unlock()
	if w.RTT(1) == 0 || w.RTT(0) != 0 || w.RTT(-1) != 0 || w.RTT(2) != 0 {
		t.Errorf("round trips %v, %v, %v, %v", w.RTT(1), w.RTT(0), w.RTT(-1), w.RTT(2))
	}
}

// Who asks for the round trips to all ranks of a large world makes no links to them.
func TestRTTMakesNoLinks(t *testing.T) {
	const n = 4 * maxFull
	p := &proposal{}
	var ids []peer.ID
	for r := range n {
		p.members = append(p.members, said(fmt.Sprintf("%02d", r), 0, 1))
		ids = append(ids, p.members[r].ID)
	}
	p.roster = newRoster("m", 1, digest{}, ids)
	w := newWorld(nil, Config{}, p, ids[0])
	for r := range n {
		if rtt := w.RTT(r); rtt != 0 {
			t.Errorf("%v to rank %d", rtt, r)
		}
	}
	if got, want := len(w.all()), len(w.near); got != want {
		t.Errorf("%d links, want %d", got, want)
	}
}
