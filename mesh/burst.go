package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

const (
	burstProtocol protocol.ID = "/peermesh/burst/1"

	// nearBurst and farBurst are the bytes of a burst, which come in pieces. burstTime
	// bounds how long its sender goes on, burstLimit how long it takes in all.
	nearBurst, farBurst   = 256 << 10, 1 << 20
	burstPiece            = 32 << 10
	burstTime, burstLimit = 300 * time.Millisecond, 2 * time.Second
)

// nothing is what bursts consist of.
var nothing [burstPiece]byte

// burst sends one and returns the rate that the other side has seen.
func (w *World) burst(b burst) (uint64, error) {
	ctx, cancel := context.WithTimeout(w.ctx, burstLimit)
	defer cancel()
	l := w.to(b.to)
	l.need()
	select {
	case <-l.attached: // before, the other side may not know the world
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	s, err := w.node.Open(ctx, l.id, burstProtocol)
	if err != nil {
		return 0, err
	}
	s.SetDeadline(time.Now().Add(burstLimit))
	size := nearBurst
	if b.far {
		size = farBurst
	}
	_, err = s.Write(w.hello().append(nil))
	for begin := time.Now(); err == nil && size > 0 && time.Since(begin) < burstTime; size -= burstPiece {
		_, err = s.Write(nothing[:])
	}
	var seen []byte
	if err == nil {
		if err = s.CloseWrite(); err == nil {
			seen, err = readFull(s, 8)
		}
	}
	if err != nil {
		s.Reset(err)
		return 0, err
	}
	s.Close()
	return min(binary.LittleEndian.Uint64(seen), maxRate), nil
}

// serveBurst is the other side: it says how fast the bytes have come.
func (m *Mesh) serveBurst(s *node.Stream) {
	if w, _ := m.admit(s); w == nil {
		return
	}
	s.SetDeadline(time.Now().Add(burstLimit))
	seen, err := clock(s)
	if err != nil {
		m.drop(s, err)
		return
	}
	if _, err := s.Write(binary.LittleEndian.AppendUint64(nil, seen)); err != nil {
		m.drop(s, err)
		return
	}
	s.Close()
}

// clock reads up to a burst to its end, and returns bytes per second: of all that came
// after the first piece, or of the later half, if that was faster: a connection that
// begins is slow.
func clock(from io.Reader) (uint64, error) {
	r := bufio.NewReaderSize(from, burstPiece)
	var times []time.Duration // since when each piece was there
	begin := time.Now()
	for range farBurst / burstPiece {
		n, err := r.Discard(burstPiece)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				break
			}
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("mesh: burst of more than %d bytes: %w", farBurst, node.ErrViolation)
	}
	return max(rateOf(times), rateOf(times[len(times)/2:])), nil
}

func rateOf(times []time.Duration) uint64 {
	if len(times) < 2 {
		return 0
	}
	took := max(times[len(times)-1]-times[0], 1)
	return uint64(float64((len(times)-1)*burstPiece) / took.Seconds())
}
