package testnet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/testnet/simlink"
)

// A tracer tells of what happens on a network that has no links to tell of it: of
// every message between two ranks that has arrived, and of deaths and returns.
type tracer struct {
	start time.Time
	node  map[peer.ID]int // the number of each, in every life

	mu    sync.Mutex // guards the rest
	tell  func(simlink.Event)
	since time.Duration   // the last instant
	held  []simlink.Event // of that instant
}

// newTracer is nil where the links do it, or nobody wants to know.
func newTracer(n *Net, keys []crypto.PrivKey) (*tracer, error) {
	if n.links != nil || n.config.Trace == nil {
		return nil, nil
	}
	t := &tracer{start: time.Now(), node: make(map[peer.ID]int), tell: n.config.Trace}
	for i, key := range keys {
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("testnet: identity of node %d: %w", i, err)
		}
		t.node[id] = i
	}
	return t, nil
}

// event takes note of one. Those of one instant are told when it is over, in an order
// that follows from what they are: there are no latencies here that would keep them
// apart, and which goroutine is first says nothing.
func (t *tracer) event(e simlink.Event) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.At = time.Since(t.start); e.At > t.since {
		t.flush()
		t.since = e.At
	}
	t.held = append(t.held, e)
}

// end tells the rest.
func (t *tracer) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

// flush tells what is held. The lock is held.
func (t *tracer) flush() {
	slices.SortFunc(t.held, func(a, b simlink.Event) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Bytes, b.Bytes))
	})
	for _, e := range t.held {
		t.tell(e)
	}
	t.held = t.held[:0]
}

// transport is the world as a group is to use it.
func (t *tracer) transport(w *mesh.World) ops.Transport {
	if t == nil {
		return w
	}
	return &traced{w, t}
}

// A traced world tells of every message that was received.
type traced struct {
	*mesh.World
	tracer *tracer
}

// Recv receives, and tells of it.
func (t *traced) Recv(ctx context.Context, from int, lane uint64, accept func(tag ops.Tag, n int64) error, land func(p []byte) error) error {
	var size int64
	err := t.World.Recv(ctx, from, lane, func(tag ops.Tag, n int64) error {
		size = n
		return accept(tag, n)
	}, land)
	if err == nil {
		node := t.tracer.node
		t.tracer.event(simlink.Event{Kind: "message", From: node[t.Peer(from)], To: node[t.Peer(t.Rank())], Stream: lane, Bytes: int(size)})
	}
	return err
}
