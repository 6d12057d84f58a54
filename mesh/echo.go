package mesh

import (
	"context"
	"encoding/binary"
	"time"
)

const (
	// echoes is how many round trips a link is judged by, and echoTime bounds them for
	// a few ranks.
	echoes, echoTime = 3, time.Second
	// tunnelFrom is the way to a loopback address from which on that is taken for the
	// near end of a tunnel.
	tunnelFrom = 10 * time.Millisecond

	echoAsk, echoAnswer = 0, 1
)

// sound finds out how far a neighbour is, which has link.reading afterwards.
func (w *World) sound(l *link) {
	defer l.mark(l.sounded)
	ctx, cancel := context.WithTimeout(w.ctx, crowd(echoTime, w.Size()))
	defer cancel()
	sure, likely := l.stream.SameHost()
	if sure {
		l.reading = &reading{rank: l.rank}
		return
	}
	for range echoes {
		now := uint64(time.Since(w.start).Nanoseconds())
		select {
		case l.queue <- controlFrame(frameEcho, binary.LittleEndian.AppendUint64([]byte{echoAsk}, now)):
		case <-ctx.Done():
			return
		}
		select {
		case trip := <-l.echo:
			if l.reading == nil || trip/2 < l.reading.latency {
				l.reading = &reading{l.rank, asTold(trip / 2)}
			}
		case <-ctx.Done():
			return
		}
	}
	if likely && l.reading.latency < tunnelFrom {
		l.reading.latency = 0
	}
}

// asTold is a way as it is told, in microseconds, of which there is at least one: a rank that
// kept more of its own readings than others are told would draw another chart than they.
func asTold(way time.Duration) time.Duration {
	return max((way+time.Microsecond-1)/time.Microsecond, 1) * time.Microsecond
}

// echoed takes an echo: ours, come back, or theirs, which goes back.
func (l *link) echoed(s *scanner) error {
	kind, sent := s.uint8(), s.uint64()
	if kind > echoAnswer {
		s.fail("echo of kind %d", kind)
	}
	if err := s.end(); err != nil {
		return err
	}
	if kind == echoAsk {
		select {
		case l.queue <- controlFrame(frameEcho, binary.LittleEndian.AppendUint64([]byte{echoAnswer}, sent)):
		default: // far behind: it will be no reading
		}
		return nil
	}
	if trip := time.Since(l.w.start).Nanoseconds() - int64(sent); trip >= 0 && trip < int64(time.Hour) {
		select {
		case l.echo <- time.Duration(trip):
		default: // nobody has asked
		}
	}
	return nil
}
