package pipetest

import (
	"context"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
)

// connClose: a closed connection takes its streams with it, and tells the code.
func connClose(t *testing.T, connect Connect) {
	c, d := connect(t, &network.NullResourceManager{}, &network.NullResourceManager{})
	near, far := stream(t, c, d)
	read := make(chan error, 1)
	go func() { read <- second(far.Read(make([]byte, 1))) }()
	if c.IsClosed() || d.IsClosed() {
		t.Error("closed from the beginning")
	}
	must(t, c.CloseWithError(42))
	for who, err := range map[string]error{
		"read": <-read, "accept": second(d.AcceptStream()), "open": second(d.OpenStream(t.Context())),
	} {
		if !errors.Is(err, &network.ConnError{ErrorCode: 42, Remote: true}) {
			t.Errorf("the other side's %s: %v", who, err)
		}
	}
	for who, err := range map[string]error{
		"read": second(near.Read(make([]byte, 1))), "write": second(near.Write([]byte{1})), "open": second(c.OpenStream(t.Context())),
	} {
		if !errors.Is(err, &network.ConnError{ErrorCode: 42}) {
			t.Errorf("this side's %s: %v", who, err)
		}
	}
	if !c.IsClosed() || !d.IsClosed() {
		t.Errorf("closed: %v, %v", c.IsClosed(), d.IsClosed())
	}
	must(t, errors.Join(c.Close(), c.CloseWithError(7), d.Close())) // once is enough
}

// backlog: whoever opens more streams than the other side has room for waits for as long
// as the context allows, or until there is room.
func backlog(t *testing.T, connect Connect, most int) {
	near := new(Account)
	c, d := connect(t, near, &network.NullResourceManager{})
	first, err := c.OpenStream(t.Context())
	must(t, err)
	for range most - 1 {
		must(t, second(c.OpenStream(t.Context())))
	}
	held := near.Held()
	ctx, cancel := context.WithDeadline(t.Context(), soon())
	defer cancel()
	if err := second(c.OpenStream(ctx)); !errors.Is(err, context.DeadlineExceeded) || near.Held() != held {
		t.Errorf("one more: %v; %d bytes held, %d before", err, near.Held(), held)
	}
	opened := make(chan error, 1)
	go func() { opened <- second(c.OpenStream(t.Context())) }()
	far, err := d.AcceptStream()
	must(t, errors.Join(err, far.Close(), first.Close()))
	must(t, <-opened)
}

// limits: what streams hold is reserved on both sides, and given back with them.
func limits(t *testing.T, connect Connect) {
	a, b := new(Account), new(Account)
	c, d := connect(t, a, b)
	want := func(what string, conns, each, streams int) {
		t.Helper()
		for name, have := range map[string]*Account{"this side": a, "the other": b} {
			if have.Open() != conns || have.Held() != streams*each {
				t.Errorf("%s: %s has %d connections and holds %d bytes, want %d and %d", what, name, have.Open(), have.Held(), conns, streams*each)
			}
		}
	}
	want("connected", 1, 0, 0)
	near, far := stream(t, c, d)
	each := a.Held()
	if each <= 0 {
		t.Errorf("a stream holds %d bytes", each)
	}
	near2, far2 := stream(t, d, c)
	stream(t, c, d)
	want("three streams", 1, each, 3)
	must(t, errors.Join(near.Close(), far.Close(), far.Reset()))
	want("one closed", 1, each, 2)
	must(t, errors.Join(near2.Reset(), far2.Reset(), near2.Close()))
	want("one reset", 1, each, 1)
	a.Poor.Store(true)
	if err := second(c.OpenStream(t.Context())); !errors.Is(err, network.ErrResourceLimitExceeded) {
		t.Errorf("opened without memory: %v", err)
	}
	want("none to be had", 1, each, 1)
	must(t, errors.Join(c.Close(), d.Close()))
	want("all closed", 0, each, 0)
}
