package mux

import (
	"fmt"
	"io"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
)

// refusal is the code of a stream that there is no room for.
const refusal = uint32(network.StreamResourceLimitExceeded)

// An intake reads frames off a secured connection.
type intake struct {
	from io.Reader
	buf  [chunkWhole]byte
	r, n int
}

// need reads until at least k bytes are there, k ≤ chunkWhole, and takes them.
func (in *intake) need(k int) ([]byte, error) {
	if in.n-in.r < k {
		in.n = copy(in.buf[:], in.buf[in.r:in.n])
		in.r = 0
		for in.n < k {
			n, err := in.from.Read(in.buf[in.n:])
			in.n += n
			if err != nil && in.n < k {
				return nil, err
			}
		}
	}
	p := in.buf[in.r : in.r+k]
	in.r += k
	return p, nil
}

// fill reads exactly len(p) bytes, most of them past the buffer.
func (in *intake) fill(p []byte) error {
	n := copy(p, in.buf[in.r:in.n])
	in.r += n
	_, err := io.ReadFull(in.from, p[n:])
	return err
}

// demux deals what comes to the streams, until the connection ends. It waits for
// nothing but the peer.
func (c *Conn) demux() error {
	if err := c.greeted(); err != nil {
		return err
	}
	in := &intake{from: c.sec}
	for {
		p, err := in.need(headSize)
		if err != nil {
			return err
		}
		h, err := parseHead(p)
		if err != nil {
			return err
		}
		if h.kind == frameData {
			err = c.data(in, c.find(h.id), h)
		} else if p, err = in.need(h.n); err == nil {
			err = c.control(h, p)
		}
		if err != nil {
			return err
		}
	}
}

// control obeys a frame that has no data.
func (c *Conn) control(h head, body []byte) error {
	switch h.kind {
	case frameOpen:
		return c.opened(h.id)
	case frameAway:
		return &network.ConnError{Remote: true, ErrorCode: network.ConnErrorCode(code(body)), TransportError: net.ErrClosed}
	}
	s := c.find(h.id)
	if s == nil {
		return c.never(h.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h.kind {
	case frameCredit:
		n := code(body)
		if n > Window || s.credit+int(n) > Window {
			return fmt.Errorf("mux: credit of %d bytes for stream %d, which has %d", n, h.id, s.credit)
		}
		s.credit += int(n)
		poke(s.writable)
	case frameFin:
		s.finGot = true
		poke(s.readable)
		if s.finSent {
			s.over()
		}
	case frameReset:
		s.breakOff(&network.StreamError{Remote: true, ErrorCode: network.StreamErrorCode(code(body))})
		s.over()
	}
	return nil
}

// opened makes the stream that the peer has opened.
func (c *Conn) opened(id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id%2 == c.nextID%2 || id <= c.lastID {
		return fmt.Errorf("mux: the peer opened stream %d after %d", id, c.lastID)
	}
	c.lastID = id
	if c.err != nil {
		return c.err
	}
	if c.foreign == maxStreams {
		return fmt.Errorf("mux: the peer opened more than %d streams", maxStreams)
	}
	s := c.newStream(id)
	s.opened = true
	c.foreign++
	c.streams[id] = s
	c.inbox.put(s)
	return nil
}

// find is a stream; nil if there is none of the number.
func (c *Conn) find(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// never tells frames that crossed with a stream's end from those of a stream that has
// not been.
func (c *Conn) never(id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id%2 == c.nextID%2 && id >= c.nextID || id%2 != c.nextID%2 && id > c.lastID {
		return fmt.Errorf("mux: frame for stream %d, which nobody has opened", id)
	}
	return nil
}

// data takes a data frame's body: large parts as they are, small ones behind others.
func (c *Conn) data(in *intake, s *Stream, h head) error {
	if s == nil {
		if err := c.never(h.id); err != nil {
			return err
		}
	} else if err := s.expect(h.n); err != nil {
		return err
	}
	for left := h.n; left > 0; {
		if left < chunkWhole {
			p, err := in.need(left)
			if err != nil {
				return err
			}
			s.push(p)
			return nil
		}
		chunk := chunks.Get().(*[chunkSize]byte)
		n := min(left, chunkSize)
		if err := in.fill(chunk[:n]); err != nil {
			chunks.Put(chunk)
			return err
		}
		s.hand(chunk, n)
		left -= n
	}
	return nil
}

// expect takes n bytes off the stream's window.
func (s *Stream) expect(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finGot {
		return fmt.Errorf("mux: data for stream %d after its end", s.id)
	}
	if s.room -= n; s.room < 0 {
		return fmt.Errorf("mux: %d bytes more for stream %d than its window", -s.room, s.id)
	}
	return nil
}

// push adds a copy of p to what waits for the reader.
func (s *Stream) push(p []byte) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wants(len(p), s.in.room(len(p))) {
		s.in.append(p)
		poke(s.readable)
	}
}

// hand adds a chunk to what waits for the reader.
func (s *Stream) hand(chunk *[chunkSize]byte, n int) {
	if s == nil {
		chunks.Put(chunk)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wants(n, 1) {
		chunks.Put(chunk)
		return
	}
	s.in.hand(chunk, n)
	poke(s.readable)
}

// wants reports whether n bytes are to be kept, and reserves memory for that many more
// chunks. The lock is held.
func (s *Stream) wants(n, more int) bool {
	if s.reset != nil {
		return false
	}
	if s.shut {
		s.take(n)
		return false
	}
	need := (len(s.in.list) + more) * chunkSize
	if need <= s.held {
		return true
	}
	if err := s.c.span.ReserveMemory(need-s.held, network.ReservationPriorityAlways); err != nil {
		s.breakOff(fmt.Errorf("mux: stream %d: %w", s.id, err))
		s.resetDue, s.code = true, refusal
		s.tell()
		return false
	}
	s.held = need
	return true
}

// over is the end of a stream on both sides. The lock is held.
func (s *Stream) over() {
	if s.linger != nil {
		s.linger.Stop()
	}
	if !s.gone {
		s.gone = true
		s.c.forget(s)
	}
	s.free()
}

// free gives reserved memory back when no more will be needed. The lock is held.
func (s *Stream) free() {
	if s.gone && s.in.size == 0 && s.held > 0 {
		s.c.span.ReleaseMemory(s.held)
		s.held = 0
	}
}

// orphan is the end of a stream's connection.
func (s *Stream) orphan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linger != nil {
		s.linger.Stop()
	}
}

// forget has the connection know a stream no more.
func (c *Conn) forget(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.id)
	if s.ours {
		<-c.open
	} else {
		c.foreign--
	}
}
