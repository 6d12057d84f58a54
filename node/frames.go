package node

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
)

// yamux keeps each frame that nobody has read in a buffer of its own, of a power of two
// bytes, and a place for it in a list: no more than three times the payload of a frame of
// smallFrame bytes or more, but some forty times that of a single byte. Its windows count
// payload only. So a ledger between yamux and the connection counts the frames beside it,
// and ends a connection that has too many small ones unread.
const (
	// smallFrame is the least payload in bytes of a frame that is not counted. A message
	// of mesh begins with 48; heartbeats have less, and are read at once.
	smallFrame = 32
	// frameCost is what a smaller one is taken to hold, in bytes.
	frameCost = 64
	// accountCost is that of a stream in the ledger itself.
	accountCost = 128
	// maxSmall bounds what small frames may hold on a connection, in bytes: those of a
	// stream on which a window of single bytes waits for a slow reader, and a sixteenth more
	// for all others.
	maxSmall = (Window + Window/16) * frameCost
	// ledgerStep is in what pieces it is taken from the peer's limits.
	ledgerStep = 64 << 10
)

// Of yamux's specification: the header's size, the kinds of frame that a stream has, their
// flags, and the window that a stream begins with before it is granted more.
const (
	yamuxHead                                = 12
	yamuxData, yamuxWindow                   = 0, 1
	yamuxSYN, yamuxACK, yamuxFIN, yamuxReset = 1, 2, 4, 8
	yamuxInitial                             = 256 << 10
)

// A yamuxHeader is that of a frame.
type yamuxHeader struct {
	kind           byte
	flags          uint16
	stream, length uint32
}

// A yamuxReader finds the headers in one direction of a connection, however it is cut.
type yamuxReader struct {
	head [yamuxHead]byte
	have int    // bytes of the header at hand
	skip uint32 // bytes of payload still to come
}

// read calls f for each header that p completes, until it fails.
func (r *yamuxReader) read(p []byte, f func(yamuxHeader) error) error {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(uint32(len(p)), r.skip)
			p, r.skip = p[n:], r.skip-n
			continue
		}
		n := copy(r.head[r.have:], p)
		p, r.have = p[n:], r.have+n
		if r.have < yamuxHead {
			return nil
		}
		r.have = 0
		h := yamuxHeader{
			kind: r.head[1], flags: binary.BigEndian.Uint16(r.head[2:]),
			stream: binary.BigEndian.Uint32(r.head[4:]), length: binary.BigEndian.Uint32(r.head[8:]),
		}
		if h.kind == yamuxData {
			r.skip = h.length
		}
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// An account is one stream of a ledger. What has been read of it shows in the window
// updates that yamux sends, each of which gives back what was read since the last. A small
// frame is counted until two updates have passed all that came before the first of them:
// longer than it is held, and never less. But no more frames can be unread than bytes are, so
// that a stream of single bytes, of which two windows would be too many, counts one at most.
type account struct {
	in      uint64 // bytes of payload received
	granted uint64 // by window updates
	mark    uint64 // of in, when an update had last passed the mark before
	old     int    // counted for frames up to the mark
	young   int    // and for those since
	ended   uint8  // 1: by us; 2: by the peer
}

// passed is told of a window update, and returns what need not be counted any more.
func (a *account) passed(delta uint32) (over int) {
	a.granted += uint64(delta)
	if a.granted < Window-yamuxInitial {
		return 0
	}
	read, before := a.granted-(Window-yamuxInitial), a.old+a.young
	if read >= a.mark {
		a.old, a.young, a.mark = a.young, 0, a.in
	}
	most := frameCost * int(a.in-min(read, a.in))
	a.young = min(a.young, most)
	a.old = min(a.old, most-a.young)
	return before - a.old - a.young
}

// A ledger is a secured connection that yamux runs on, and the count of its small frames.
type ledger struct {
	net.Conn
	scope network.PeerScope
	span  network.ResourceScopeSpan

	reading, writing yamuxReader // each of one goroutine's
	mu               sync.Mutex  // guards the rest
	accounts         map[uint32]*account
	counted          int // bytes
	reserved         int // of the peer's limits, for them
	done             bool
}

func newLedger(c net.Conn, scope network.PeerScope) (*ledger, error) {
	span, err := scope.BeginSpan()
	if err != nil {
		return nil, fmt.Errorf("node: no room for a connection of %s: %w", scope.Peer(), err)
	}
	return &ledger{Conn: c, scope: scope, span: span, accounts: make(map[uint32]*account)}, nil
}

// Read fails, which has yamux end the connection, when the peer is over its bounds.
func (l *ledger) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if over := l.reading.read(p[:n], l.received); over != nil {
		logger.Warnf("the connection of %s is dropped: %v", l.scope.Peer(), over)
		return 0, over
	}
	return n, err
}

// Write notes what yamux tells the peer of its streams.
func (l *ledger) Write(p []byte) (int, error) {
	if err := l.writing.read(p, l.sent); err != nil {
		return 0, err
	}
	return l.Conn.Write(p)
}

// Close gives back what was taken of the peer's limits.
func (l *ledger) Close() error {
	l.mu.Lock()
	if !l.done {
		l.done = true
		l.span.Done()
	}
	l.mu.Unlock()
	return l.Conn.Close()
}

func (l *ledger) received(h yamuxHeader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.account(h)
	if a == nil || err != nil {
		return err
	}
	if h.kind == yamuxData && h.length > 0 {
		a.in += uint64(h.length)
		if h.length < smallFrame {
			a.young += frameCost
			err = l.count(frameCost)
		}
	}
	l.end(a, h, 2)
	return err
}

func (l *ledger) sent(h yamuxHeader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.account(h)
	if a == nil || err != nil {
		return err
	}
	if h.kind == yamuxWindow && h.flags&yamuxReset == 0 {
		l.uncount(a.passed(h.length))
	}
	l.end(a, h, 1)
	return nil
}

// account is that of a frame's stream, which a first frame begins anew; nil if there is none.
func (l *ledger) account(h yamuxHeader) (*account, error) {
	if h.kind > yamuxWindow || l.done {
		return nil, nil
	}
	a := l.accounts[h.stream]
	if h.flags&yamuxSYN == 0 {
		return a, nil
	}
	if a != nil { // yamux has let go of it, or ends the connection now
		l.close(a, h.stream)
	}
	a = new(account)
	l.accounts[h.stream] = a
	return a, l.count(accountCost)
}

// end closes an account when both sides have ended the stream, or one has broken it. What
// yamux may let go of earlier, as a stream that we have closed both ways, is counted until
// then.
func (l *ledger) end(a *account, h yamuxHeader, side uint8) {
	if h.flags&yamuxFIN != 0 {
		a.ended |= side
	}
	if h.flags&yamuxReset != 0 || a.ended == 1|2 {
		l.close(a, h.stream)
	}
}

func (l *ledger) close(a *account, stream uint32) {
	delete(l.accounts, stream)
	l.uncount(a.old + a.young + accountCost)
}

// count takes some bytes more from the peer's limits, in steps.
func (l *ledger) count(bytes int) error {
	l.counted += bytes
	if l.counted > maxSmall {
		return fmt.Errorf("node: it has sent too many frames of less than %d bytes that are not read: %w", smallFrame, ErrLimit)
	}
	if l.counted <= l.reserved {
		return nil
	}
	if err := l.span.ReserveMemory(ledgerStep, network.ReservationPriorityAlways); err != nil {
		return fmt.Errorf("node: no room for its frames: %w: %w", ErrLimit, err)
	}
	l.reserved += ledgerStep
	return nil
}

func (l *ledger) uncount(bytes int) {
	l.counted -= bytes
	for l.reserved-l.counted >= 2*ledgerStep {
		l.span.ReleaseMemory(ledgerStep)
		l.reserved -= ledgerStep
	}
}
