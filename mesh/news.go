package mesh

import (
	"encoding/binary"
	"fmt"
	"time"
)

// In a world of many ranks not every two are linked (see neighbours), so what all
// must know is passed on: that a rank is in, which is that it has committed the
// world, that it stands, which it signs, and what its bursts have shown. Each piece of
// news is passed on once, along the tree of the rank that it is about (routes.go). An end,
// which there is only one of, goes to all neighbours and before all else: see World.end.

// tell passes on news about a rank, its own or another's. The lock is held.
func (w *World) tell(rank int, frame []byte) {
	for i, l := range w.near {
		if w.routes.on(w.rank, rank, i) {
			l.news = append(l.news, frame)
			l.stir()
		}
	}
}

// stir wakes the link's writer.
func (l *link) stir() {
	select {
	case l.stirred <- struct{}{}:
	default: // it will see this news with that before
	}
}

// newsPause is how long news is gathered in a large world before it leaves: most of it
// comes in a moment, from all sides.
const newsPause = 10 * time.Millisecond

// newsSize is about how many bytes of news leave in one write.
const newsSize = 16 << 10

// writeNews sends a neighbour what it is to know.
func (l *link) writeNews() error {
	l.w.mu.Lock()
	frames := l.news
	l.news = nil
	l.w.mu.Unlock()
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	p := make([]byte, 0, min(size, newsSize+controlHead+maxControl))
	for i, f := range frames {
		if p = append(p, f...); len(p) < newsSize && i < len(frames)-1 {
			continue
		}
		if _, err := l.stream.Write(p); err != nil {
			return err
		}
		p = p[:0]
	}
	return nil
}

func rankFrame(kind uint8, rank int, p []byte) []byte {
	return controlFrame(kind, binary.LittleEndian.AppendUint32(nil, uint32(rank)), p)
}

// arrived notes that a rank is in.
func (w *World) arrived(rank int64) error {
	if rank >= int64(w.Size()) {
		return fmt.Errorf("mesh: rank %d is in a world of %d", rank, w.Size())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.present[rank] {
		return nil
	}
	w.present[rank] = true
	if w.sparse() {
		w.tell(int(rank), rankFrame(frameIn, int(rank), nil))
	}
	if w.missing--; w.missing == 0 {
		close(w.whole)
	}
	return nil
}

// absent is a rank that is not in; -1 if all are.
func (w *World) absent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, in := range w.present {
		if !in {
			return r
		}
	}
	return -1
}

// heardStand notes that a rank stands, if it has signed that.
func (w *World) heardStand(s *scanner) error {
	rank, sig := int64(s.uint32()), s.bytes(maxStand)
	row, err := takeReadings(s, w.Size())
	switch {
	case err != nil:
		return err
	case rank >= int64(w.Size()):
		return fmt.Errorf("mesh: rank %d stands in a world of %d", rank, w.Size())
	}
	w.mu.Lock()
	known := w.sigs[rank] != nil
	w.mu.Unlock()
	if known {
		return nil
	}
	if err := checkStand(w.Peer(int(rank)), w.roster.Digest, sig); err != nil {
		return err
	}
	w.note(int(rank), append([]byte(nil), sig...), row)
	return nil
}

// note keeps a signature that was checked, and how far the rank has found others, and
// passes them on. With the last of them it is known that the world stands on every rank.
func (w *World) note(rank int, sig []byte, row []reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sigs[rank] != nil {
		return
	}
	w.sigs[rank], w.survey.rows[rank] = sig, row
	said := append(make([]byte, 0, len(sig)+6*len(row)), sig...)
	w.tell(rank, rankFrame(frameStand, rank, appendReadings(said, row)))
	if w.unsure--; w.unsure > 0 {
		return
	}
	stands, rows := w.sigs, w.survey.rows
	w.survey.rows = nil // they take n² in all, and the chart says it in n
	if w.stood != nil {
		w.tasks.start(func() { w.stood(stands) })
	}
	w.tasks.start(func() { w.sendBursts(rows) })
}

// sparse reports whether there are ranks that are no neighbours.
func (w *World) sparse() bool { return w.Size() > maxFull }
