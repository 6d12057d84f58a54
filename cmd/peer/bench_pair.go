package main

import (
	"context"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

const (
	// inFlight messages of a stream are under way at once, fewFlights if they are
	// larger than largeMessage bytes.
	inFlight, fewFlights = 16, 4
	largeMessage         = 16 << 20
	// The tags of what is sent, and of the word that it has come.
	dataTag, ackTag = 0, 1
)

// pingpong goes there and back; its time is that of one way.
func pingpong(s *stage) trial {
	x := s.some(1)
	return trial{per: 2,
		run: func(ctx context.Context) error {
			if s.rank == 0 {
				if err := s.g.Send(ctx, x, 1, dataTag); err != nil {
					return err
				}
				return s.g.Recv(ctx, x, 1, dataTag)
			}
			if err := s.g.Recv(ctx, x, 0, dataTag); err != nil {
				return err
			}
			return s.g.Send(ctx, x, 0, dataTag)
		},
		before: func() {
			if s.rank == 0 {
				s.typ.moved(0).fill(x)
			}
		},
		right: func() bool { return s.typ.moved(0).fills(x) }}
}

// stream has some messages under way at once, and then a word back; its time is
// that of one message.
func stream(s *stage) trial {
	flight := inFlight
	if int64(s.count)*int64(s.typ.dtype.Size()) > largeMessage {
		flight = fewFlights
	}
	messages := make([]tensor.Tensor, flight)
	for i := range messages {
		messages[i] = s.some(1)
	}
	ack := tensor.New(tensor.Int32, 1)
	return trial{per: float64(flight),
		run: func(ctx context.Context) error { return s.flight(ctx, messages, ack) },
		before: func() {
			for i, x := range messages {
				if s.rank == 0 {
					s.typ.moved(i).fill(x)
				}
			}
		},
		right: func() bool {
			for i, x := range messages {
				if !s.typ.moved(i).fills(x) {
					return false
				}
			}
			return true
		}}
}

// flight sends all messages from rank 0 to rank 1, and a word back.
func (s *stage) flight(ctx context.Context, messages []tensor.Tensor, ack tensor.Tensor) error {
	var batch []ops.P2P
	for _, x := range messages {
		batch = append(batch, ops.P2P{Send: s.rank == 0, X: x, Peer: 1 - s.rank, Tag: dataTag})
	}
	if err := s.g.Batch(ctx, batch).Wait(); err != nil {
		return err
	}
	if s.rank == 0 {
		return s.g.Recv(ctx, ack, 1, ackTag)
	}
	return s.g.Send(ctx, ack, 0, ackTag)
}

// sendrecv has every rank send to the next while it receives from the one before;
// one alone copies.
func sendrecv(s *stage) trial {
	in, out := s.some(1), s.some(1)
	next, last := (s.rank+1)%s.n, (s.rank+s.n-1)%s.n
	return trial{
		run: func(ctx context.Context) error {
			if s.n == 1 {
				return tensor.Copy(out, in)
			}
			return s.g.Batch(ctx, []ops.P2P{{Send: true, X: in, Peer: next, Tag: dataTag}, {X: out, Peer: last, Tag: dataTag}}).Wait()
		},
		before: func() { s.typ.moved(s.rank).fill(in) },
		right:  func() bool { return s.typ.moved(last).fills(out) }}
}
