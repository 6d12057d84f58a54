package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/trainer"
)

// maxSpans bounds what a rank keeps of a timeline: its last spans.
const maxSpans = 1 << 15

// A timeline is what one rank did and when, by its own clock until clocks are compared.
type timeline struct {
	*flight.Recorder // of the operations
	path             string
	clock            func() time.Time

	mu     sync.Mutex
	rank   int
	offset time.Duration // to be added for rank 0's time
	spans  []span        // a ring
	next   int
	whole  bool // rank 0 has all ranks' part

	doing string // the phase of a step that this rank is in; empty: none
	since time.Time
}

// A span is something that a rank did.
type span struct {
	Track string // what can only do one thing at a time: "steps", "send → 2"
	Name  string
	From  int64 // ns since 1970
	To    int64
	Note  string // more about it; empty: nothing
}

func newTimeline(path string) *timeline {
	return &timeline{Recorder: flight.New(flight.MaxPlaces), path: path, clock: time.Now}
}

// enter says which rank this is, in the latest world.
func (t *timeline) enter(rank int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rank, t.offset, t.whole = rank, 0, false
}

// add notes what has been done from a time until now. t may be nil.
func (t *timeline) add(track, name string, from time.Time, note string) {
	if t == nil {
		return
	}
	s := span{track, name, from.UnixNano(), time.Now().UnixNano(), note}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.spans) < maxSpans {
		t.spans = append(t.spans, s)
		return
	}
	t.spans[t.next] = s
	t.next = (t.next + 1) % maxSpans
}

// phase says what the processor is about from now on, between one step's communication
// and the next: forward, backward, wait, optimizer; and empty: none of that. What is in
// flight meanwhile, beside backward above all, is what a run has overlapped.
func (t *timeline) phase(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	before, since := t.doing, t.since
	t.doing, t.since = name, time.Now()
	t.mu.Unlock()
	if before != "" {
		t.add("compute", before, since, "")
	}
}

// during notes what f does.
func (t *timeline) during(track, name string, f func() error) error {
	from := time.Now()
	err := f()
	t.add(track, name, from, "")
	return err
}

// over is a world whose messages are noted; without a timeline it is the world itself.
func (t *timeline) over(w trainer.World) trainer.World {
	if t == nil {
		return w
	}
	return &observedWorld{w, observedTransport{w, t}}
}

// transport is likewise for a transport.
func (t *timeline) transport(w ops.Transport) ops.Transport {
	if t == nil {
		return w
	}
	return &observedTransport{w, t}
}

// An observedWorld is a trainer's world whose messages are noted.
type observedWorld struct {
	trainer.World
	messages observedTransport
}

func (w *observedWorld) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	return w.messages.Send(ctx, to, lane, tag, n, parts)
}

func (w *observedWorld) Recv(ctx context.Context, from int, lane uint64, accept func(tag ops.Tag, n int64) error, land func(p []byte) error) error {
	return w.messages.Recv(ctx, from, lane, accept, land)
}

// Ahead and Host are what a transport may have besides.
func (w *observedWorld) Ahead(to int, lane uint64) int64 { return w.messages.Ahead(to, lane) }
func (w *observedWorld) Host() string                    { return w.messages.Host() }

// An observedTransport notes each message that is sent or received. That it takes time
// shows where it takes it, too.
type observedTransport struct {
	ops.Transport
	timeline *timeline
}

// Ahead is what the transport is certain to take, if it says so.
func (o *observedTransport) Ahead(to int, lane uint64) int64 {
	if a, ok := o.Transport.(interface {
		Ahead(to int, lane uint64) int64
	}); ok {
		return a.Ahead(to, lane)
	}
	return 0
}

// Host is the name of the host that the transport knows, if it does.
func (o *observedTransport) Host() string {
	if h, ok := o.Transport.(interface{ Host() string }); ok {
		return h.Host()
	}
	return ""
}

func (o *observedTransport) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	from := time.Now()
	err := o.Transport.Send(ctx, to, lane, tag, n, parts)
	o.timeline.add(fmt.Sprintf("send → %d", to), round(tag), from, fmt.Sprint(n, " bytes, lane ", uint32(lane)))
	return err
}

// Recv notes a message from when this rank waits for it.
func (o *observedTransport) Recv(ctx context.Context, from int, lane uint64, accept func(tag ops.Tag, n int64) error, land func(p []byte) error) error {
	begin := time.Now()
	var size int64
	var name string
	err := o.Transport.Recv(ctx, from, lane, func(tag ops.Tag, n int64) error {
		size, name = n, round(tag)
		return accept(tag, n)
	}, land)
	o.timeline.add(fmt.Sprintf("receive ← %d", from), name, begin, fmt.Sprint(size, " bytes, lane ", uint32(lane)))
	return err
}

// round names a message by its tag: see mesh/SPEC.md.
func round(tag ops.Tag) string {
	seq, kind := binary.LittleEndian.Uint64(tag[0:]), ops.Kind(tag[16])
	if kind == ops.KindSend {
		return fmt.Sprintf("message #%d", seq)
	}
	return fmt.Sprintf("%v #%d, round %d", kind, seq, binary.LittleEndian.Uint32(tag[28:]))
}
