package node

import (
	"context"
	"errors"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
)

// A doorman is a listener that hands out only those who have been admitted. They
// are looked at side by side, so that one that is slow to prove itself holds up
// nobody.
type doorman struct {
	transport.Listener
	access *access
	ctx    context.Context
	cancel context.CancelFunc
	in     chan transport.CapableConn
	err    error // why there will be no more, once in is closed
}

func (a *access) listener(l transport.Listener) transport.Listener {
	d := &doorman{Listener: l, access: a, in: make(chan transport.CapableConn)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	go d.loop()
	return d
}

func (d *doorman) loop() {
	var wg sync.WaitGroup
	defer close(d.in)
	defer wg.Wait()
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			d.err = err
			return
		}
		wg.Go(func() {
			if !d.access.admit(d.ctx, c) {
				return
			}
			select {
			case d.in <- c:
			case <-d.ctx.Done():
				c.Close()
			}
		})
	}
}

// Accept waits for the next peer that is admitted.
func (d *doorman) Accept() (transport.CapableConn, error) {
	for c := range d.in {
		if !c.IsClosed() {
			return c, nil
		}
		c.Close() // gives back what it holds
	}
	if d.ctx.Err() != nil {
		return nil, transport.ErrListenerClosed
	}
	return nil, d.err
}

// Close returns when nobody is being looked at any more.
func (d *doorman) Close() error {
	d.cancel()
	err := d.Listener.Close()
	for c := range d.in {
		c.Close()
	}
	return err
}

// admit decides about an inbound connection, and closes it if the answer is no.
func (a *access) admit(ctx context.Context, c transport.CapableConn) bool {
	select {
	case a.proofs <- struct{}{}:
		defer func() { <-a.proofs }()
	default:
		c.CloseWithError(network.ConnResourceLimitExceeded)
		return false
	}
	if !a.allowed(c.RemotePeer()) {
		a.log.add(c.RemotePeer().String(), c.RemoteMultiaddr(), ErrNotAllowed)
		turnAway(ctx, c)
		return false
	}
	err := a.prove(ctx, c, false)
	if err != nil && !errors.Is(err, context.Canceled) {
		a.log.add(c.RemotePeer().String(), c.RemoteMultiaddr(), err)
	}
	return err == nil
}

// turnAway resets what a peer that is not on the list opens, with the reason, and
// then closes the connection. Closing at once would be simpler, but on TCP the
// reason is lost if the other side happens to be writing.
func turnAway(ctx context.Context, c transport.CapableConn) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	gone := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(gone)
		c.CloseWithError(CodeNotAllowed)
	})
	for range farewellStreams {
		s, err := c.AcceptStream()
		if err != nil {
			break // the other side has closed, or the time is over
		}
		s.ResetWithError(codeNotAllowed)
	}
	cancel()
	<-gone
}
