package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// A handler counts the calls it has running, so that whoever ends it can wait.
type handler struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	serve  func(*Stream)
	tidy   *group
	active group
	once   sync.Once
}

// Handle calls f, in a goroutine of its own, with each stream that a peer opens
// for the protocol. The stream is tied to ctx and to the node; f owns it and
// must close it, reset it or hand it on. Stop takes no more streams, ends the
// context of those that are tied to it, and returns when no call of f runs. From then
// on the node resets the protocol's streams with CodeClosed. It does not take back that
// it speaks it: libp2p would tell every connected peer, protocol by protocol, and in a
// large world that parts these are more streams than it took to form.
//
// A protocol has one handler at a time.
func (n *Node) Handle(ctx context.Context, p protocol.ID, f func(*Stream)) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return nil, fmt.Errorf("node: %w", ErrClosed)
	}
	if n.handlers[p] != nil {
		return nil, fmt.Errorf("node: %s is handled already", p)
	}
	h := &handler{serve: f, tidy: &n.tidy}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	unlink := context.AfterFunc(n.ctx, func() { h.cancel(context.Cause(n.ctx)) })
	n.handlers[p] = h
	n.host.SetStreamHandler(p, h.accept)
	return func() {
		n.mu.Lock()
		if n.handlers[p] == h {
			delete(n.handlers, p)
		}
		n.mu.Unlock()
		unlink()
		h.end()
	}, nil
}

func (h *handler) accept(raw network.Stream) {
	if !h.active.enter() {
		_ = raw.ResetWithError(CodeClosed) // a stream that came too late; nobody waits for it
		return
	}
	defer h.active.leave()
	h.serve(newStream(h.ctx, raw, h.tidy))
}

// end waits for the calls that run. The host keeps the handler, to refuse streams with,
// but not what it served.
func (h *handler) end() {
	h.cancel(ErrClosed)
	h.active.wait()
	h.once.Do(func() { h.serve = nil })
}
