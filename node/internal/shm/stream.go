//go:build linux && (amd64 || arm64)

package shm

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
)

// The flags of a block.
const (
	flagOpen  = 1 << iota // the side has taken part
	flagFin               // it will write no more
	flagStop              // it will read no more
	flagReset             // it has broken the stream; the block's code says why
	flagDone              // it will never touch the slot again in this generation

	flagMask = 1<<32 - 1 // the rest is the generation
)

// A Stream is one end of a stream: a slot, for one generation.
type Stream struct {
	conn *Conn
	slot int
	gen  uint32

	mine, theirs     block
	in               tailer // under reading
	out              header // under writing
	reading, writing sync.Mutex
	reads, writes    waiter

	// uses counts the calls that touch the shared memory, and one for the stream as
	// long as it is open. With the last of them the slot is given up.
	uses   atomic.Int32
	halted atomic.Bool // err or a flag of ours may forbid the next step
	known  atomic.Bool // the other side has taken the stream up

	mu    sync.Mutex // guards the rest
	flags uint64     // what mine.flags says
	err   error      // why the stream is broken
	ended bool       // the stream's own use is over
}

var (
	_ network.MuxedStream = (*Stream)(nil)
	_ pipe.Lender         = (*Stream)(nil)
)

// newStream begins this side's part of a stream. Conn.mu is held.
func newStream(c *Conn, slot int, gen uint32) *Stream {
	us, them := c.side, 1-c.side
	s := &Stream{conn: c, slot: slot, gen: gen, flags: flagOpen,
		mine: c.mem.block(slot, us), theirs: c.mem.block(slot, them)}
	s.in = tailer{data: c.mem.ring(slot, them), peer: s.theirs.head, mine: s.mine.tail}
	s.out = header{data: c.mem.ring(slot, us), peer: s.theirs.tail, mine: s.mine.head}
	s.reads = waiter{index: s.theirs.head, flags: s.theirs.flags, asleep: s.mine.reader, signal: pipe.NewSignal(), seat: &c.seat}
	s.writes = waiter{index: s.theirs.tail, flags: s.theirs.flags, asleep: s.mine.writer, signal: pipe.NewSignal(), seat: &c.seat}
	s.uses.Store(1)
	c.mem.retain()
	s.mine.begin(gen, flagOpen)
	return s
}

// use keeps the shared memory for a call; false if the stream has been given up.
func (s *Stream) use() bool {
	for {
		n := s.uses.Load()
		if n == 0 {
			return false
		}
		if s.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Stream) unuse() {
	if s.uses.Add(-1) == 0 {
		s.conn.retire(s)
	}
}

// met reads the other side's flags: none if it has not seen the stream yet. Until
// it has, its block is what is left of the generation before.
func (s *Stream) met() (raw, flags uint64, err error) {
	known := s.known.Load() // before the flags, or else another call may meet it between the two
	raw = s.theirs.flags.Load()
	switch {
	case uint32(raw>>32) == s.gen:
		s.known.Store(true)
		return raw, raw & flagMask, nil
	case known:
		return raw, 0, s.conn.violated(errScribbled)
	}
	return raw, 0, nil
}

// refusal is why a call cannot go on as far as this side knows.
func (s *Stream) refusal(closed uint64, d *pipe.Deadline) error {
	if s.halted.Load() {
		s.mu.Lock()
		err, flags := s.err, s.flags
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if flags&closed != 0 {
			return pipe.ErrClosed
		}
	}
	if d.Passed() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Read reads what is there, at least one byte.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		pipe.Asked(p, s)
		return 0, nil
	}
	return s.Lend(len(p), func(b []byte) (int, error) { return copy(p, b), nil })
}

// Lend reads without a copy: see pipe.Lender. What use sees is the ring itself: a
// broken peer may change it meanwhile.
func (s *Stream) Lend(limit int, use func(p []byte) (int, error)) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if !s.use() {
		return 0, s.refusal(flagStop, &s.reads.deadline)
	}
	defer s.unuse()
	for {
		s.reads.stirred.Store(false)
		if err := s.refusal(flagStop, &s.reads.deadline); err != nil {
			return 0, err
		}
		raw, flags, err := s.met() // before the index: with fin, that one is the last
		switch {
		case err != nil:
			return 0, err
		case flags&flagReset != 0:
			return 0, pipe.Remote(network.StreamErrorCode(s.theirs.code.Load()))
		case flags != 0:
			if err := s.in.refresh(); err != nil {
				return 0, s.conn.violated(err)
			}
		}
		if p := s.in.front(limit); len(p) > 0 {
			n, err := use(p)
			s.in.took(n)
			s.conn.wake(s.theirs.writer, s.slot)
			return n, err
		}
		if flags&flagFin != 0 {
			return 0, io.EOF
		}
		index := s.in.head
		if flags == 0 {
			index = s.theirs.head.Load()
		}
		s.reads.wait(index, raw)
	}
}

// Write writes all of p unless it fails.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.use() {
		return 0, s.refusal(flagFin, &s.writes.deadline)
	}
	defer s.unuse()
	for {
		s.writes.stirred.Store(false)
		if err := s.refusal(flagFin, &s.writes.deadline); err != nil {
			return n, err
		}
		raw, flags, err := s.met()
		switch {
		case err != nil:
			return n, err
		case flags&flagReset != 0:
			return n, pipe.Remote(network.StreamErrorCode(s.theirs.code.Load()))
		case flags&flagStop != 0:
			return n, pipe.ErrStopped
		case n == len(p):
			return n, nil
		case flags != 0:
			if err := s.out.refresh(); err != nil {
				return n, s.conn.violated(err)
			}
		}
		if k := s.out.put(p[n:]); k > 0 {
			n += k
			s.conn.wake(s.theirs.reader, s.slot)
			if n == len(p) {
				return n, nil
			}
			continue
		}
		index := s.out.tail
		if flags == 0 {
			index = s.theirs.tail.Load()
		}
		s.writes.wait(index, raw)
	}
}

// CloseWrite lets the other side read to the end of what was written.
func (s *Stream) CloseWrite() error { return s.say(flagFin) }

// CloseRead lets reads fail here, and writes at the other side.
func (s *Stream) CloseRead() error { return s.say(flagStop) }

// say sets flags of ours and lets both sides see them.
func (s *Stream) say(flags uint64) error {
	s.mu.Lock()
	if !s.ended && s.flags&flags != flags {
		s.publish(flags)
	}
	s.mu.Unlock()
	s.stir()
	return nil
}

// publish sets flags; s.mu and a use of the stream are held.
func (s *Stream) publish(flags uint64) {
	s.flags |= flags
	s.halted.Store(true)
	s.mine.flags.Store(uint64(s.gen)<<32 | s.flags)
	s.conn.tell(s.slot)
}

func (s *Stream) stir() {
	s.reads.stir()
	s.writes.stir()
}

// Close closes both directions. What was written is delivered.
func (s *Stream) Close() error {
	s.end(flagFin|flagStop, nil)
	return nil
}

// Reset is ResetWithError without a code.
func (s *Stream) Reset() error { return s.ResetWithError(network.StreamNoError) }

// ResetWithError breaks the stream on both sides, for a stream that is closed no
// more.
func (s *Stream) ResetWithError(code network.StreamErrorCode) error {
	s.mu.Lock()
	if !s.ended {
		s.mine.code.Store(uint32(code))
	}
	s.mu.Unlock()
	s.end(flagReset, pipe.Local(code))
	return nil
}

// end ends this side's part: calls under way return, and with the last of them
// the slot is given up.
func (s *Stream) end(flags uint64, err error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.err = err
	s.publish(flags)
	s.ended = true
	s.mu.Unlock()
	s.stir()
	s.unuse()
	_ = s.SetDeadline(time.Time{}) // stops the timers; does not fail
}

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	s.reads.deadline.Set(t)
	s.writes.deadline.Set(t)
	return nil
}

// SetReadDeadline bounds reads.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.reads.deadline.Set(t)
	return nil
}

// SetWriteDeadline bounds writes.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.writes.deadline.Set(t)
	return nil
}
