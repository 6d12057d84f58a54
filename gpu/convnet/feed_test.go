package convnet

import (
	"context"
	"errors"
	"testing"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// happened is whether an event has.
func happened(t *testing.T, e *gpu.Event) bool {
	t.Helper()
	yes, err := e.Happened()
	if err != nil {
		t.Error(err)
	}
	return yes
}

// TestPrefetch has the next batch come to the device while backward is at work, and while
// gradients travel. The stream that computes is held up behind the loss; the other rank does
// not come before the copy has ended.
func TestPrefetch(t *testing.T) {
	one, two := opened(t, 0), opened(t, 1)
	net, theirs := made(t, one, nn.Config{}), made(t, two, nn.Config{})
	worlds := memnet.New(2)
	copied, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- other(t.Context(), worlds[1], theirs.Params(), copied) }()
	d, err := trainer.NewDDP(t.Context(), ops.NewGroup(worlds[0], ops.Config{}), net.Params(), trainer.DDPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	work := make(chan struct{})
	var turn *gpu.Event // the end of backward
	held := false
	ready := func(i int) {
		if !held { // the last stage's gradients are queued, and what follows waits
			held = true
			if err := net.s.Hold(work); err != nil {
				t.Error(err)
			}
		}
		d.Ready(i)
	}
	if _, err := net.ForwardBackward(t.Context(), drawn(3, 1), ready); err != nil {
		t.Fatal(err)
	}
	turn, err = net.d.NewEvent()
	if err := errors.Join(err, net.s.Record(turn), net.Prefetch(drawn(3, 2))); err != nil {
		t.Fatal(err)
	}
	closedAtEnd(t, turn)
	next := &net.feed.slots[net.feed.turn]
	if err := next.copied.Sync(); err != nil {
		t.Fatal(err)
	}
	if happened(t, turn) {
		t.Error("the batch came after backward")
	}
	close(work)
	if err := turn.Sync(); err != nil {
		t.Fatal(err)
	}
	close(copied) // now the other rank has its gradients too
	if err := errors.Join(d.Wait(), <-ended); err != nil {
		t.Fatal(err)
	}
	fail(t, "cuMemcpyHtoDAsync_v2", 1, 999)
	_, e1 := net.ForwardBackward(t.Context(), drawn(3, 2), nil)
	_, e2 := net.ForwardBackward(t.Context(), drawn(3, 2), nil)
	var code *gpu.Error
	if e1 != nil || !errors.As(e2, &code) || code.Code != 999 {
		t.Errorf("the batch that was there: %v; the same once more, to be copied: %v", e1, e2)
	}
}

// other is a rank that has no samples, and says so when it may.
func other(ctx context.Context, w *memnet.World, params []*trainer.Param, may <-chan struct{}) error {
	d, err := trainer.NewDDP(ctx, ops.NewGroup(w, ops.Config{}), params, trainer.DDPConfig{})
	if err != nil {
		return err
	}
	<-may
	d.Idle()
	return d.Wait()
}

// TestPrefetched trains on batches that are on their way, on others instead, and on some
// between which is an evaluation: losses are those of a net that fetches nothing ahead.
func TestPrefetched(t *testing.T) {
	d := opened(t, 0)
	plain, ahead := made(t, d, nn.Config{Seed: 2}), made(t, d, nn.Config{Seed: 2})
	if err := ahead.Prefetch(drawn(2, 0)); err != nil || ahead.feed.ahead != 0 {
		t.Errorf("ahead of the first step, for which there is no room: %v, %d samples", err, ahead.feed.ahead)
	}
	both := func(b nn.Batch) {
		t.Helper()
		x, e1 := plain.ForwardBackward(t.Context(), b, nil)
		y, e2 := ahead.ForwardBackward(t.Context(), b, nil)
		if e1 != nil || e2 != nil || x != y {
			t.Errorf("losses %v and %v, %v, %v", x, y, e1, e2)
		}
	}
	batch := func(n int, seed uint64) nn.Batch {
		b := drawn(n, seed)
		if err := ahead.Prefetch(b); err != nil {
			t.Error(err)
		}
		return b
	}
	both(drawn(17, 1))
	both(batch(17, 2)) // in two shards
	batch(17, 3)
	both(batch(5, 4)) // another, in place of it
	batch(5, 5)
	both(drawn(5, 6)) // another, of which nobody has spoken
	b := batch(5, 7)
	b.X[0]++ // it has changed
	both(b)
	b = batch(5, 8)
	if _, _, err := ahead.Evaluate(t.Context(), drawn(3, 1)); err != nil {
		t.Error(err)
	}
	both(b)
	batch(5, 9)
	both(drawn(20, 10)) // which needs more room
	if err := ahead.Prefetch(nn.Batch{}); err == nil {
		t.Error("a batch of no samples")
	}
	fail(t, "cuMemcpyHtoDAsync_v2", 2, 999)
	if err := ahead.Prefetch(drawn(4, 1)); err == nil || ahead.feed.ahead != 0 {
		t.Errorf("a copy that fails: %v", err)
	}
	both(drawn(4, 1))
	fail(t, "cuEventSynchronize", 1, 999)
	if err := ahead.Prefetch(drawn(4, 1)); err == nil || ahead.feed.ahead != 0 {
		t.Errorf("a wait for the copy before that fails: %v", err)
	}
	both(drawn(4, 1))
}
