package tcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"

	"peermesh/node/internal/mux"
)

var logger = log.Logger("peermesh/tcp")

const (
	// far is the round trip from which a connection is worth stripes.
	far = 5 * time.Millisecond
	// stripes is how many TCP connections carry one between far peers.
	stripes = 4
	// stripeTime bounds the dials of one connection's stripes.
	stripeTime = 30 * time.Second
)

// stripe dials further connections for one that goes far, beside its use.
func (t *Transport) stripe(c transport.CapableConn, addr multiaddr.Multiaddr, p peer.ID) {
	var m *mux.Conn
	if !c.As(&m) || roundTrip(m) < far {
		return
	}
	t.dials.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, stripeTime)
		defer cancel()
		if err := m.AwaitReady(ctx); err != nil {
			return // the connection has failed, and whoever uses it knows
		}
		for range stripes - 1 {
			if err := t.add(ctx, m, addr, p); err != nil {
				logger.Debugw("a connection has fewer stripes", "peer", p, "err", err)
				return
			}
		}
	})
}

// add dials one stripe.
func (t *Transport) add(ctx context.Context, m *mux.Conn, addr multiaddr.Multiaddr, p peer.ID) error {
	c, err := t.dial(ctx, addr, p, m, nil)
	if err != nil {
		return err
	}
	var s *mux.Conn
	if !c.As(&s) {
		_ = c.Close() // with another muxer it can be no stripe
		return fmt.Errorf("tcp: %s chose another muxer for a stripe", p)
	}
	m.Keep(c)
	if err := s.AwaitReady(ctx); err != nil {
		_ = c.Close()
		return err
	}
	if !m.Spread(s) {
		return fmt.Errorf("tcp: the connection to %s is full, or has ended", p)
	}
	return nil
}

// dials are the goroutines of a transport.
type dials struct {
	mu     sync.Mutex
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
}

func (d *dials) start(f func(context.Context)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithCancel(context.Background())
	}
	ctx := d.ctx
	d.wg.Go(func() { f(ctx) })
}

func (d *dials) close() {
	d.mu.Lock()
	d.closed = true
	if d.cancel != nil {
		d.cancel()
	}
	d.mu.Unlock()
	d.wg.Wait()
}
