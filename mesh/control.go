package mesh

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"peermesh/node"
)

// Kinds of control frames. Never renumbered.
const (
	frameBeat    = 1
	frameSignal  = 2
	frameEnd     = 3
	frameLeave   = 4
	frameGoodbye = 5
	frameIn      = 6
	frameStand   = 7
	frameEcho    = 8
	frameRates   = 9
)

const (
	// controlHead is a kind in one byte and a length in two.
	controlHead = 3
	// maxSignal bounds a signal's payload in bytes, as ops does.
	maxSignal = 512
	// maxCause bounds the text of an end in bytes.
	maxCause = 1024
	endHead  = 8 + 4 + 1
	// controlRead is how many bytes are read ahead: some frames.
	controlRead = 512
	// maxControl bounds any control frame's payload.
	maxControl = endHead + maxCause
	// maxQueued bounds the signals that wait to be sent to one rank.
	maxQueued = 256
	// beatEvery is the longest pause between heartbeats, and beatSparse that in a world
	// in which not every two ranks are linked. There as many neighbours hear each rank
	// as in a world of maxFull, so one of them learns of a death about as soon, and 64
	// ranks, who may share a machine, send 1,400 beats a second in place of 2,800.
	// Three are still due before the shortest silence that counts.
	beatEvery, beatSparse = 250 * time.Millisecond, 500 * time.Millisecond
)

func controlFrame(kind uint8, payload ...[]byte) []byte {
	size := 0
	for _, part := range payload {
		size += len(part)
	}
	p := append(make([]byte, 0, controlHead+size), kind)
	p = binary.LittleEndian.AppendUint16(p, uint16(size))
	for _, part := range payload {
		p = append(p, part...)
	}
	return p
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

// errFrame is what a peer did whose control stream makes no sense.
var errFrame = fmt.Errorf("bad control frame: %w", node.ErrViolation)

// read serves the other side's frames until the stream ends.
func (l *link) read() {
	err := l.frames(bufio.NewReaderSize(l.stream, controlRead))
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
		if head[0] != frameBeat { // see beat
			l.hear()
		}
		if err := l.frame(head[0], payload[:n]); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
	}
}

func (l *link) frame(kind uint8, p []byte) error {
	s := scanner{p: p}
	switch kind {
	case frameBeat:
		return l.beaten(&s)
	case frameIn:
		rank := s.uint32()
		if err := s.end(); err != nil {
			return err
		}
		return l.w.arrived(int64(rank))
	case frameStand:
		return l.w.heardStand(&s)
	case frameEcho:
		return l.echoed(&s)
	case frameRates:
		return l.w.heardRates(&s)
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
	beat := time.NewTicker(l.w.beat)
	defer beat.Stop()
	var gathered <-chan time.Time // when news is to leave that is being gathered
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
			_, err = l.stream.Write(l.beatFrame())
		case <-l.stirred:
			if gathered != nil {
				continue
			}
			if !l.w.sparse() {
				err = l.writeNews()
				break
			}
			gathered = time.After(newsPause)
		case <-gathered:
			gathered = nil
			err = l.writeNews()
		}
		if err != nil { // the reader sees the same end of the stream, and says so
			l.stream.Reset(err)
			return
		}
	}
}

// writeLast sends an urgent frame after the signals that were there before it, and, if
// the world goes on without us, after the news.
func (l *link) writeLast(f []byte) error {
	if l.w.ctx.Err() == nil {
		if err := l.writeNews(); err != nil {
			return err
		}
	}
	for range len(l.queue) {
		if _, err := l.stream.Write(<-l.queue); err != nil {
			return err
		}
	}
	_, err := l.stream.Write(f)
	return err
}
