package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// How a world learns what its links are like.
//
// When a control stream stands, the lower rank sends a few echoes there and keeps the
// shortest round trip. What a rank has found goes with its word that it stands, which
// all ranks get, so once a world is known to stand everywhere all have the same rows,
// and from them, by a pure function, the same chart (chart.go). It says who sends a burst
// to whom; what the bursts show is passed on as well, and then the survey is over. On
// one host there is nothing to send.
//
// No rank needs to be told when the others have the chart: a world has one, as it has
// one roster, and whoever prices by it waits for it. Nothing in it can fail: an echo
// that does not return in time is no reading, a burst that breaks is of rate 0, and a
// rank that says neither is a rank that the world ends for.

const (
	// maxReadings bounds the readings of one rank: itself and its neighbours of higher rank.
	maxReadings = 24 // more than 2·log₂ MaxWorld, and itself
	// maxRate bounds what is believed of a link, in bytes per second.
	maxRate = 1e15
)

// A survey is what a world knows of its links so far. World.mu guards it.
type survey struct {
	rows  [][]reading    // by rank; nil once all are there
	rates map[int]ratios // by rank, of those that have sent bursts
	chart *chart         // from when all rows are there
	due   []burst        // all that are to be sent, until it is complete
	said  int            // of due: how many at its head are of ranks that have said their rates
	done  chan struct{}  // closed when the chart is complete
}

// ratios are what a rank's bursts have shown, in bytes per second.
type ratios struct{ near, far uint64 }

// of is what a burst of that kind has shown.
func (r *ratios) of(b burst) *uint64 {
	if b.far {
		return &r.far
	}
	return &r.near
}

// Survey waits until it is known what the world's links are like, and returns it: on
// every rank the same. That takes a few round trips from when World has returned.
func (w *World) Survey(ctx context.Context) (Links, error) {
	select {
	case <-w.survey.done:
		return w.survey.chart, nil
	case <-w.ctx.Done():
		return nil, context.Cause(w.ctx)
	case <-ctx.Done():
		return nil, fmt.Errorf("mesh: survey: %w", context.Cause(ctx))
	}
}

// readings are what this rank has found, once all its soundings are over, of itself too.
func (w *World) readings() (row []reading) {
	row = append(row, processors(w.rank, ownCores()))
	for _, l := range w.near {
		if l.rank < w.rank {
			continue
		}
		select {
		case <-l.sounded:
			if got := l.reading; got != nil {
				row = append(row, *got)
			}
		case <-w.ctx.Done():
			return row
		}
	}
	return row
}

// appendReadings writes each as a rank in two bytes and whole microseconds in four.
func appendReadings(p []byte, row []reading) []byte {
	for _, r := range row {
		p = binary.LittleEndian.AppendUint16(p, uint16(r.rank))
		p = binary.LittleEndian.AppendUint32(p, uint32(r.latency/time.Microsecond))
	}
	return p
}

func takeReadings(s *scanner, ranks int) (row []reading, err error) {
	if len(s.p)/6 > maxReadings {
		return nil, fmt.Errorf("mesh: %d bytes of readings", len(s.p))
	}
	row = make([]reading, 0, len(s.p)/6)
	for len(s.p) > 0 && s.err == nil {
		r := reading{int(s.uint16()), time.Duration(s.uint32()) * time.Microsecond}
		if r.rank >= ranks {
			s.fail("reading of rank %d in a world of %d", r.rank, ranks)
		}
		row = append(row, r)
	}
	return row, s.end()
}

// sendBursts draws the chart, as all rows are there, and sends this rank's bursts. It is a
// task of its own.
func (w *World) sendBursts(rows [][]reading) {
	names := make([]string, w.Size())
	for r := range names {
		names[r] = hostOf(w.members[r].Addrs)
	}
	c := newChart(rows, names)
	all := c.bursts()
	w.mu.Lock()
	w.survey.chart, w.survey.due = c, all
	w.completeSurvey()
	w.mu.Unlock()
	var got ratios
	sent := false
	for _, b := range all {
		if b.from != w.rank {
			continue
		}
		sent = true
		rate, err := w.burst(b)
		if err != nil {
			log.Debugw("burst failed", "rank", b.to, "err", err)
		}
		*got.of(b) = rate
	}
	if sent {
		w.noteRates(w.rank, got)
	}
}

// noteRates keeps a rank's rates, and passes them on.
func (w *World) noteRates(rank int, r ratios) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.survey.rates[rank]; known {
		return
	}
	w.survey.rates[rank] = r
	p := binary.LittleEndian.AppendUint64(nil, r.near)
	w.tell(rank, rankFrame(frameRates, rank, binary.LittleEndian.AppendUint64(p, r.far)))
	w.completeSurvey()
}

// heardRates takes what a rank says of its bursts.
func (w *World) heardRates(s *scanner) error {
	rank := s.uint32()
	r := ratios{s.uint64(), s.uint64()}
	if err := s.end(); err != nil {
		return err
	}
	if int64(rank) >= int64(w.Size()) || max(r.near, r.far) > maxRate {
		return fmt.Errorf("mesh: rates %d and %d of rank %d", r.near, r.far, rank)
	}
	w.noteRates(int(rank), r)
	return nil
}

// completeSurvey ends the survey when nothing of it is missing. The lock is held.
func (w *World) completeSurvey() {
	v := &w.survey
	if v.chart == nil || isClosed(v.done) {
		return
	}
	for ; v.said < len(v.due); v.said++ {
		if _, said := v.rates[v.due[v.said].from]; !said {
			return
		}
	}
	for _, b := range v.due {
		r := v.rates[b.from]
		v.chart.rate(b, *r.of(b))
	}
	v.due = nil
	close(v.done)
}
