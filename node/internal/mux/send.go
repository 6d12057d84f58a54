package mux

import (
	"encoding/binary"
	"os"
	"time"
)

// record is the longest plaintext of a TLS record. The beginning of a frame is copied
// behind its head to fill one; the rest is sealed from where it is.
const record = 16 << 10

// take waits for the right to send.
func (c *Conn) take(expired <-chan struct{}) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-expired:
		return os.ErrDeadlineExceeded
	case <-c.done:
		return c.failure()
	}
}

func (c *Conn) give() { <-c.turn }

// The functions below are for the holder of the turn.

// seal puts a data frame onto the held wire, which does not block.
func (c *Conn) seal(open bool, id uint32, p []byte) error {
	buf := c.seals[0][:0]
	if open {
		buf = head{kind: frameOpen, id: id}.append(buf)
	}
	buf = head{frameData, len(p), id}.append(buf)
	first := min(len(p), record-len(buf))
	buf = append(buf, p[:first]...)
	c.seals[0] = buf
	_, err := c.sec.Write(buf)
	if err == nil && first < len(p) {
		_, err = c.sec.Write(p[first:])
	}
	if err != nil {
		c.fail(err)
	}
	return err
}

// settle puts all that streams have to tell onto the held wire.
func (c *Conn) settle() error {
	c.mu.Lock()
	tellers := c.tellers
	c.tellers = nil
	c.mu.Unlock()
	buf := c.seals[1][:0]
	for _, s := range tellers {
		buf = s.report(buf)
	}
	c.seals[1] = buf
	if len(buf) == 0 {
		return nil
	}
	_, err := c.sec.Write(buf)
	if err != nil {
		c.fail(err)
	}
	return err
}

// flush sends what the wire holds, within the write deadline of a stream; nil: of none.
func (c *Conn) flush(s *Stream) error {
	c.mu.Lock()
	c.flusher = s
	err := c.limit()
	c.mu.Unlock()
	if err == nil {
		err = c.wire.flush()
	}
	c.mu.Lock()
	c.flusher = nil
	c.mu.Unlock()
	switch {
	case err == nil:
	case timedOut(err):
		poke(c.due) // the rest of it is the clerk's
	default:
		c.fail(err)
		err = c.failure()
	}
	return err
}

// hurry has a flush under way for a stream go by the stream's new deadline.
func (c *Conn) hurry(s *Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flusher != s {
		return nil
	}
	return c.limit()
}

// limit has the wire go by the flusher's deadline. The lock is held.
func (c *Conn) limit() error {
	var when time.Time
	if c.flusher != nil {
		when = c.flusher.wdl.at()
	}
	if when.Equal(c.limited) {
		return nil
	}
	c.limited = when
	return c.wire.Conn.SetWriteDeadline(when)
}

// queue has the clerk tell of a stream.
func (c *Conn) queue(s *Stream) {
	c.mu.Lock()
	c.tellers = append(c.tellers, s)
	c.mu.Unlock()
	poke(c.due)
}

// clerk tells the peer what no Write is there to tell: readers never write, so two
// sides that both wait to write always have someone who reads.
func (c *Conn) clerk() {
	for {
		select {
		case <-c.due:
		case <-c.done:
			return
		}
		if c.take(nil) != nil {
			return
		}
		err := c.settle()
		if err == nil {
			err = c.flush(nil)
		}
		c.give()
		if err != nil && !timedOut(err) {
			return
		}
	}
}

// report appends what a stream has to tell, and takes note of it.
func (s *Stream) report(buf []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = false
	if s.reset != nil && !s.opened {
		s.over() // before the peer has heard of it
		return buf
	}
	if s.reset != nil && !s.resetDue {
		return buf
	}
	if !s.opened {
		s.c.number(s)
		buf = head{kind: frameOpen, id: s.id}.append(buf)
	}
	if s.resetDue {
		s.resetDue = false
		s.over()
		return appendCode(buf, frameReset, s.id, s.code)
	}
	if s.owed >= giveBack && !s.finGot {
		buf = appendCode(buf, frameCredit, s.id, uint32(s.owed))
		s.room += s.owed
		s.owed = 0
	}
	if s.finDue {
		s.finDue, s.finSent = false, true
		buf = head{kind: frameFin, id: s.id}.append(buf)
		if s.finGot {
			s.over()
		}
	}
	return buf
}

func code(p []byte) uint32 { return binary.LittleEndian.Uint32(p) }
