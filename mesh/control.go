package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// Kinds of control frames. Never renumbered.
const (
	frameBeat    = 1
	frameSignal  = 2
	frameEnd     = 3
	frameLeave   = 4
	frameGoodbye = 5
)

const (
	// controlHead is a kind in one byte and a length in two.
	controlHead = 3
	// maxSignal bounds a signal's payload in bytes, as ops does.
	maxSignal = 512
	// maxCause bounds the text of an end in bytes.
	maxCause = 1024
	endHead  = 8 + 4 + 1
	// maxControl bounds any control frame's payload.
	maxControl = endHead + maxCause
	// maxQueued bounds the signals that wait to be sent to one rank.
	maxQueued = 256
	// beatEvery is the longest pause between heartbeats.
	beatEvery = 500 * time.Millisecond
)

func controlFrame(kind uint8, payload []byte) []byte {
	p := append(make([]byte, 0, controlHead+len(payload)), kind)
	return appendBlock(p, payload)
}

func endFrame(e *EndedError) []byte {
	p := binary.LittleEndian.AppendUint64(nil, e.Epoch)
	p = binary.LittleEndian.AppendUint32(p, uint32(e.Rank))
	p = append(p, causeOf(e.Err))
	return controlFrame(frameEnd, append(p, clip(e.Err.Error(), maxCause)...))
}

// decodeEnd reads the payload of an end in a world of a given roster.
func decodeEnd(p []byte, r roster) (*EndedError, error) {
	s := scanner{p: p}
	epoch, rank, code := s.uint64(), s.uint32(), s.uint8()
	switch {
	case s.err != nil:
		return nil, s.err
	case epoch != r.Epoch || int64(rank) >= int64(len(r.Members)):
		return nil, fmt.Errorf("mesh: end of epoch %d by rank %d", epoch, rank)
	}
	remote := &remoteError{text: printable(s.p)}
	if int(code) < len(causes) {
		remote.cause = causes[code]
	}
	return &EndedError{Epoch: epoch, Rank: int(rank), Peer: r.Members[rank], Err: remote}, nil
}

// A link is one control stream: how two ranks know of each other that they live,
// leave, or have seen the end.
type link struct {
	w    *World
	rank int
	id   peer.ID

	attached chan struct{} // closed when the stream is there
	urgent   chan []byte   // end, leave and goodbye: each once at most
	queue    chan []byte   // signals
	heard    atomic.Int64  // when, in nanoseconds since w.start

	left    chan struct{} // closed when it has said that it leaves
	goodbye chan struct{} // closed when it has seen that we leave
	drained chan struct{} // closed when it has left and all its lanes are here
	over    chan struct{} // closed when it knows of the end, or is gone

	mu     sync.Mutex // guards the stream, and the closing of the channels
	stream *node.Stream

	lanes  uint32 // that it had opened to us when it left; w.mu guards this
	opened uint32 // and those that have arrived
}

func newLink(w *World, rank int) *link {
	return &link{
		w: w, rank: rank, id: w.Peer(rank),
		attached: make(chan struct{}), urgent: make(chan []byte, 3), queue: make(chan []byte, maxQueued),
		left: make(chan struct{}), goodbye: make(chan struct{}),
		drained: make(chan struct{}), over: make(chan struct{}),
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// mark closes one of the link's channels, once.
func (l *link) mark(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isClosed(c) {
		close(c)
	}
}

func (l *link) isAttached() bool { return isClosed(l.attached) }

// open is the lower rank's side: hello, and a hello in return.
func (l *link) open(ctx context.Context) error {
	w := l.w
	if err := w.node.Connect(ctx, peer.AddrInfo{ID: l.id, Addrs: w.addrs[l.id]}); err != nil {
		return err
	}
	s, err := w.node.Open(ctx, l.id, controlProtocol)
	if err != nil {
		return err
	}
	if _, err = s.Write(w.hello().append(nil)); err == nil {
		var h hello
		if h, err = readHello(s); err == nil && (h.Digest != w.roster.Digest || int(h.From) != l.rank) {
			err = fmt.Errorf("mesh: %s answers for another world: %w", l.id, node.ErrViolation)
		}
	}
	if err != nil {
		s.Reset(err)
		return err
	}
	l.attach(s)
	return nil
}

// serveControl is the higher rank's side.
func (m *Mesh) serveControl(s *node.Stream) {
	w, l := m.admit(s)
	if l == nil {
		return
	}
	if l.rank > w.rank {
		m.drop(s, fmt.Errorf("mesh: rank %d opened the control stream to rank %d", l.rank, w.rank))
		return
	}
	if _, err := s.Write(w.hello().append(nil)); err != nil {
		m.drop(s, err)
		return
	}
	l.attach(s)
}

// attach gives the link its stream, and brings it to life.
func (l *link) attach(s *node.Stream) {
	l.mu.Lock()
	second := l.stream != nil
	if !second {
		l.stream = s
	}
	l.mu.Unlock()
	if second {
		s.Reset(fmt.Errorf("mesh: second control stream: %w", node.ErrViolation))
		return
	}
	s.Bind(l.w.wires)
	s.SetDeadline(time.Time{})
	l.hear()
	if !l.w.tasks.start(l.read) || !l.w.tasks.start(l.write) {
		s.Reset(node.ErrClosed)
		return
	}
	l.mark(l.attached)
}

// hear notes that the peer is alive.
func (l *link) hear() { l.heard.Store(int64(time.Since(l.w.start))) }

// errFrame is what a peer did whose control stream makes no sense.
var errFrame = fmt.Errorf("bad control frame: %w", node.ErrViolation)

// read serves the other side's frames until the stream ends.
func (l *link) read() {
	err := l.frames(bufio.NewReader(l.stream))
	switch {
	case l.w.wires.Err() != nil, isClosed(l.left):
	case l.w.node.Context().Err() != nil:
		l.w.cut() // it is we who went away
	case errors.Is(err, errFrame):
		l.w.fault(l.rank, err)
		// The rest of the stream says when the peer has seen that.
		_, _ = io.Copy(io.Discard, l.stream)
	default:
		// Not an end of our own making, and no farewell: the peer is gone. If it
		// had told us of an end, ours came before this one and stands.
		l.w.fault(l.rank, fmt.Errorf("%w: %w", ErrLost, err))
	}
	l.mark(l.over)
	l.mark(l.drained) // no lane will come any more
}

func (l *link) frames(r *bufio.Reader) error {
	var head [controlHead]byte
	payload := make([]byte, maxControl)
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := int(binary.LittleEndian.Uint16(head[1:]))
		if n > maxControl {
			return fmt.Errorf("%w of %d bytes", errFrame, n)
		}
		if _, err := io.ReadFull(r, payload[:n]); err != nil {
			return err
		}
		l.hear()
		if err := l.frame(head[0], payload[:n]); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
	}
}

func (l *link) frame(kind uint8, p []byte) error {
	s := scanner{p: p}
	switch kind {
	case frameBeat:
		return s.end()
	case frameSignal:
		channel := s.uint32()
		if s.err != nil || len(s.p) > maxSignal {
			return fmt.Errorf("mesh: signal of %d bytes", len(p))
		}
		l.w.signalled(l.rank, channel, s.p)
	case frameEnd:
		e, err := decodeEnd(p, l.w.roster)
		if err != nil {
			return err
		}
		l.w.end(e)
		l.mark(l.over)
	case frameLeave:
		lanes := s.uint32()
		if err := s.end(); err != nil {
			return err
		}
		return l.leaves(lanes)
	case frameGoodbye:
		l.mark(l.goodbye)
		return s.end()
	default:
		return fmt.Errorf("mesh: control frame of kind %d", kind)
	}
	return nil
}

// write sends what there is to send, and otherwise heartbeats.
func (l *link) write() {
	beat := time.NewTicker(min(beatEvery, l.w.silence/8))
	defer beat.Stop()
	pulse := controlFrame(frameBeat, nil)
	for {
		var err error
		select {
		case <-l.w.wires.Done():
			return
		case f := <-l.urgent:
			err = l.writeLast(f)
		case f := <-l.queue:
			_, err = l.stream.Write(f)
		case <-beat.C:
			_, err = l.stream.Write(pulse)
		}
		if err != nil { // the reader sees the same end of the stream, and says so
			l.stream.Reset(err)
			return
		}
	}
}

// writeLast sends an urgent frame after the signals that were there before it.
func (l *link) writeLast(f []byte) error {
	for range len(l.queue) {
		if _, err := l.stream.Write(<-l.queue); err != nil {
			return err
		}
	}
	_, err := l.stream.Write(f)
	return err
}
