package simlink

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
)

// sendBuffer is how much a stream takes before a write waits, in bytes.
const sendBuffer = 64 << 10

var (
	errWriteClosed = errors.New("simlink: write after close")
	errReadClosed  = errors.New("simlink: read after close")
)

// A stream is one end of a stream. The network's lock guards it.
type stream struct {
	conn  *conn
	peer  *stream
	key   uint64 // both ends' name within their connection; 0 until something is sent
	known bool   // to the side that did not open it

	out      [][]byte // written and not sent, each PacketSize at most
	outBytes int
	credit   int                      // bytes that the other side has room for
	ended    bool                     // CloseWrite; said once out is sent
	told     bool                     // the end was
	reset    *network.StreamErrorCode // to be told instead of all else
	writeErr error
	queued   bool   // among the network's dirty streams
	turn     uint64 // its last
	writable sync.Cond
	writeBy  deadline

	in       [][]byte
	read     int // bytes of the first of them
	eof      bool
	deaf     bool // CloseRead
	taken    int  // bytes that the other side was not given room for yet
	readErr  error
	readable sync.Cond
	readBy   deadline
}

var _ network.MuxedStream = (*stream)(nil)

// newStreams makes both ends, and returns that of the opener. The lock is held.
func newStreams(c *conn) *stream {
	end := func(c *conn) *stream {
		mu := &c.host.net.mu
		return &stream{conn: c, credit: c.host.net.config.Window, writable: sync.Cond{L: mu}, readable: sync.Cond{L: mu}}
	}
	near, far := end(c), end(c.peer)
	near.peer, far.peer = far, near
	near.known = true
	c.streams[near] = struct{}{}
	return near
}

// open are the streams of an end, in the order of their names. The lock is held.
func (c *conn) open() []*stream {
	return slices.SortedFunc(maps.Keys(c.streams), order)
}

// lock takes the network's lock and returns it.
func (s *stream) lock() *sync.Mutex {
	mu := &s.conn.host.net.mu
	mu.Lock()
	return mu
}

// Write takes p into the stream's buffer, and waits while that is full.
func (s *stream) Write(p []byte) (int, error) {
	defer s.lock().Unlock()
	for done := 0; ; {
		switch {
		case s.writeErr != nil:
			return done, s.writeErr
		case s.ended:
			return done, errWriteClosed
		case s.writeBy.passed():
			return done, os.ErrDeadlineExceeded
		}
		k := min(len(p)-done, sendBuffer-s.outBytes)
		s.buffer(p[done : done+k])
		if done += k; done == len(p) {
			return done, nil
		}
		s.writable.Wait()
	}
}

// buffer copies p behind what is there, so that small writes of one instant travel
// together.
func (s *stream) buffer(p []byte) {
	if len(p) == 0 {
		return
	}
	s.outBytes += len(p)
	if n := len(s.out); n > 0 {
		last := s.out[n-1]
		k := min(len(p), PacketSize-len(last))
		s.out[n-1] = pack(last, p[:k])
		p = p[k:]
	}
	for len(p) > 0 {
		k := min(len(p), PacketSize)
		s.out = append(s.out, pack(nil, p[:k]))
		p = p[k:]
	}
	s.dirty()
}

// dirty makes sure that the next flush looks at the stream.
func (s *stream) dirty() {
	n := s.conn.host.net
	if !s.queued {
		s.queued = true
		n.dirty = append(n.dirty, s)
	}
	n.flushSoon()
}

// opening is what is sent next.
func (s *stream) opening() []byte {
	if len(s.out) == 0 {
		return nil
	}
	return s.out[0]
}

// idle reports whether there is nothing to send.
func (s *stream) idle() bool {
	return s.conn.err != nil || s.reset == nil && len(s.out) == 0 && (!s.ended || s.told)
}

// stuck reports whether only the other side can let the stream send.
func (s *stream) stuck() bool { return s.reset == nil && len(s.out) > 0 && s.credit == 0 }

// advance sends one packet if the host can.
func (s *stream) advance() bool {
	h := s.conn.host
	return !h.frozen && !h.full(h.net.now()) && s.send()
}

// send sends one packet if there is anything to send and room for it at the other
// side.
func (s *stream) send() bool {
	far := s.peer
	switch {
	case s.conn.err != nil:
		return false
	case s.reset != nil:
		code := *s.reset
		s.reset = nil
		s.packet("reset", 0, func() { far.wasReset(code) })
	case len(s.out) > 0 && s.credit > 0:
		p := s.out[0]
		if len(p) > s.credit {
			p, s.out[0] = p[:s.credit:s.credit], p[s.credit:]
		} else {
			s.out[0] = nil
			s.out = s.out[1:]
		}
		s.credit -= len(p)
		s.outBytes -= len(p)
		s.writable.Broadcast()
		s.packet("data", len(p), func() { far.receive(p) })
	case len(s.out) == 0 && s.ended && !s.told:
		s.told = true
		s.packet("end", 0, func() { far.ends() })
		s.forget()
	default:
		return false
	}
	return true
}

// packet sends one that belongs to the stream.
func (s *stream) packet(kind string, size int, land func()) {
	if s.key == 0 { // before a flush could name it: its connection is closing
		s.conn.pair.streams++
		s.key = s.conn.pair.streams
	}
	s.peer.key = s.key
	c := s.conn
	c.host.net.transmit(c.host, c.peer.host, &packet{kind: kind, conn: c, size: size, key: s.key, land: land})
}

// hello makes the stream known to its side, when the first packet has come. It
// reports whether the stream still is of interest.
func (s *stream) hello() bool {
	c := s.conn
	if c.err != nil {
		return false
	}
	if s.known {
		return true
	}
	s.known = true
	c.streams[s] = struct{}{}
	if len(c.accepted) >= maxUnaccepted {
		s.abort(network.StreamResourceLimitExceeded)
		return false
	}
	c.accepted = append(c.accepted, s)
	c.ready.Signal()
	return true
}

func (s *stream) receive(p []byte) {
	switch {
	case !s.hello():
	case s.deaf || s.readErr != nil:
		s.give(len(p))
	default:
		s.in = append(s.in, p)
		s.readable.Broadcast()
	}
}

func (s *stream) ends() {
	if s.hello() {
		s.eof = true
		s.readable.Broadcast()
		s.forget()
	}
}

func (s *stream) wasReset(code network.StreamErrorCode) {
	if s.hello() {
		s.fail(&network.StreamError{ErrorCode: code, Remote: true})
	}
}

// fail ends both directions at this end, as far as they have not ended before.
func (s *stream) fail(err error) {
	if s.writeErr == nil {
		s.writeErr = err
	}
	if s.readErr == nil {
		s.readErr = err
		s.in = nil
	}
	s.out, s.outBytes = nil, 0
	s.told = true // an end would say what is not so
	s.writable.Broadcast()
	s.readable.Broadcast()
	s.forget()
}

// broken is fail for a connection that broke: what has come whole can be read.
func (s *stream) broken(err error) {
	if s.eof && s.readErr == nil {
		in := s.in
		s.fail(err)
		s.in, s.readErr = in, nil
		return
	}
	s.fail(err)
}

// abort resets the stream. The lock is held.
func (s *stream) abort(code network.StreamErrorCode) {
	if s.writeErr != nil && s.readErr != nil || s.conn.err != nil {
		return
	}
	over := s.told && s.eof // both sides have said all there is
	s.fail(&network.StreamError{ErrorCode: code})
	if !over {
		s.reset = &code
		s.dirty()
	}
}

// forget drops a stream from its connection once neither direction is of use.
func (s *stream) forget() {
	if (s.told || s.writeErr != nil) && (s.eof || s.deaf || s.readErr != nil) {
		delete(s.conn.streams, s)
	}
}

// Read takes what has come, or waits for it.
func (s *stream) Read(p []byte) (int, error) {
	defer s.lock().Unlock()
	for {
		switch {
		case s.readErr != nil:
			return 0, s.readErr
		case s.deaf:
			return 0, errReadClosed
		case s.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.in) > 0:
			return s.take(p), nil
		case s.eof:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		s.readable.Wait()
	}
}

// take fills p, as far as there is something to fill it with.
func (s *stream) take(p []byte) (n int) {
	for n < len(p) && len(s.in) > 0 {
		k := copy(p[n:], s.in[0][s.read:])
		n += k
		if s.read += k; s.read == len(s.in[0]) {
			unpack(s.in[0])
			s.in[0], s.read = nil, 0
			s.in = s.in[1:]
		}
	}
	s.give(n)
	return n
}

// give lets the other side send more, half a window at a time.
func (s *stream) give(n int) {
	c := s.conn
	if s.taken += n; s.taken < c.host.net.config.Window/2 || s.eof || c.err != nil {
		return
	}
	more, far := s.taken, s.peer
	s.taken = 0
	c.host.net.post(c.host, c.peer.host, &packet{kind: "window", conn: c, key: s.key, land: func() {
		if far.credit += more; !far.idle() {
			far.dirty()
		}
	}})
}
