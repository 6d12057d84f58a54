package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxAfter bounds the streams that one memory waits for at a time.
const maxAfter = 64

// A queue is the streams that a memory waits for. The wait is that of the goroutine which
// wants the memory, not of the device's streams for copies: those serve other memory
// too, which a stream may be waiting for in turn.
type queue struct {
	mu    sync.Mutex
	turns []turn
}

// A turn is a point in a stream. It is recorded again when the stream has got further, for
// that includes what came before.
type turn struct {
	stream *Stream
	event  *Event
	times  int // that it has been recorded
}

// After has what is done to m from now on wait for what has been queued on s: so an
// operation on m takes its turn after the computation of its contents. The caller does
// not wait. For the reverse, see Stream.Hold.
func (m *Memory) After(s *Stream) error {
	return m.h.use(func(uintptr) error { return m.queue.add(m.d, s) })
}

func (q *queue) add(d *Device, s *Stream) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.turns, func(t turn) bool { return t.stream == s })
	if i >= 0 {
		q.turns[i].times++
		return s.Record(q.turns[i].event)
	}
	if len(q.turns) == maxAfter {
		return fmt.Errorf("gpu: memory waits for %d streams already", maxAfter)
	}
	e, err := d.newEvent()
	if err != nil {
		return err
	}
	if err := s.Record(e); err != nil {
		return errors.Join(err, e.Close())
	}
	q.turns = append(q.turns, turn{stream: s, event: e})
	return nil
}

// wait waits for the streams, and forgets those that have not been recorded since.
func (q *queue) wait() error {
	q.mu.Lock()
	turns := slices.Clone(q.turns)
	q.mu.Unlock()
	for _, t := range turns {
		// Another goroutine that waited as well may have forgotten it: then it has happened.
		if err := t.event.Sync(); err != nil && !errors.Is(err, ErrClosed) {
			return err
		}
		if err := q.drop(t); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) drop(t turn) error {
	q.mu.Lock()
	i := slices.Index(q.turns, t)
	if i >= 0 {
		q.turns = slices.Delete(q.turns, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 {
		return nil
	}
	return t.event.Close()
}

// close frees the events. Nobody waits any more.
func (q *queue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, t := range q.turns {
		errs = append(errs, t.event.Close())
	}
	q.turns = nil
	return errors.Join(errs...)
}
