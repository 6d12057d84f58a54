package memnet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
)

const (
	// packetSize is the most that travels at once, in bytes: a multiple of 16, so
	// that no element is ever cut.
	packetSize = 64 << 10
	// smallSize is the room that a short message, or the end of one, takes.
	smallSize = 1 << 10
	// window is how many bytes, headers too, a sender may be ahead of its receiver:
	// that of a new libp2p stream.
	window     = 256 << 10
	headerSize = 48
	// maxSignals bounds the signals that wait for one rank.
	maxSignals = 1024
	// maxSignal bounds one signal, in bytes.
	maxSignal = 512
)

// ErrKilled is the cause of a world in which a rank was killed.
var ErrKilled = errors.New("memnet: killed")

// A network is what the worlds of one New share.
type network struct {
	size   int
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	lanes   map[address]*lane
	mailbox []mailbox
}

type address struct {
	from, to int
	lane     uint64
}

// A World is one rank's end of an in-memory world.
type World struct {
	net  *network
	rank int
	sent atomic.Int64 // payload bytes

	mu    sync.Mutex
	lanes map[address]*lane // those of the network that this end has used
}

// New returns the n ends of a new world, by rank.
func New(n int) []*World {
	ctx, cancel := context.WithCancelCause(context.Background())
	net := &network{
		size: n, ctx: ctx, cancel: cancel,
		lanes: make(map[address]*lane), mailbox: make([]mailbox, n),
	}
	worlds := make([]*World, n)
	for r := range worlds {
		worlds[r] = &World{net: net, rank: r, lanes: make(map[address]*lane)}
	}
	return worlds
}

// Rank is this end's rank.
func (w *World) Rank() int { return w.rank }

// Size is the number of ranks.
func (w *World) Size() int { return w.net.size }

// Context ends when the world does.
func (w *World) Context() context.Context { return w.net.ctx }

// End ends the world for all ranks.
func (w *World) End(cause error) {
	if cause == nil {
		cause = errors.New("memnet: world ended")
	}
	w.net.cancel(cause)
}

// Kill ends the world as the death of this rank would.
func (w *World) Kill() { w.End(fmt.Errorf("rank %d: %w", w.rank, ErrKilled)) }

// Sent is how many payload bytes this rank has sent so far.
func (w *World) Sent() int64 { return w.sent.Load() }

// Send writes one message to a lane; see ops.Transport.
func (w *World) Send(ctx context.Context, to int, id uint64, tag [40]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	l, err := w.lane(w.rank, to, id)
	if err != nil {
		return err
	}
	if err := l.lock(ctx, w.net.ctx); err != nil {
		return err
	}
	defer l.unlock()
	if err := l.sender.send(ctx, w.net.ctx, tag, n, parts); err != nil {
		return fmt.Errorf("memnet: send to rank %d: %w", to, err)
	}
	w.sent.Add(n)
	return nil
}

// Recv takes the next message of a lane; see ops.Transport.
func (w *World) Recv(ctx context.Context, from int, id uint64, accept func([40]byte, int64) error, land func([]byte) error) error {
	l, err := w.lane(from, w.rank, id)
	if err != nil {
		return err
	}
	return l.recv(ctx, w.net.ctx, accept, land)
}

func (w *World) lane(from, to int, id uint64) (*lane, error) {
	if from == to || min(from, to) < 0 || max(from, to) >= w.net.size {
		return nil, fmt.Errorf("memnet: no lane from rank %d to %d in a world of %d", from, to, w.net.size)
	}
	at := address{from, to, id}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[at]
	if l == nil {
		l = w.net.lane(at)
		w.lanes[at] = l
	}
	return l, nil
}

// lane is the one of that address, made if it is new.
func (n *network) lane(at address) *lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lanes[at]
	if l == nil {
		l = newLane()
		n.lanes[at] = l
	}
	return l
}
