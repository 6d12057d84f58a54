package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
	"go.uber.org/fx"
)

var logger = log.Logger("node")

const (
	// proofTimeout bounds the proof of a secret: two round trips.
	proofTimeout = 5 * time.Second
	// farewell is how long a refused peer has to take in the reason, and
	// farewellStreams how many of its streams are told.
	farewell        = time.Second
	farewellStreams = 16
	// refusalEvery is how often at most a refusal is logged.
	refusalEvery = time.Second
)

// access decides who may talk to a node. It stands between the transports and
// libp2p's host: a connection that is not admitted never becomes one of the
// host's, so that no protocol, ours or another's, sees a byte of it.
type access struct {
	psk, proof []byte // keys; nil without a secret
	allow      map[peer.ID]bool
	proofs     chan struct{} // a token for each proof under way
	log        refusals
	shut       atomic.Bool // nobody is dialled any more, not by libp2p either
}

func newAccess(secret []byte, allow []peer.ID, peers int) (*access, error) {
	a := &access{proofs: make(chan struct{}, room(peers))}
	if secret != nil {
		if err := checkSecret(secret); err != nil {
			return nil, fmt.Errorf("node: %w", err)
		}
		a.psk, a.proof = derive(secret, pskInfo), derive(secret, proofInfo)
	}
	if len(allow) > MaxAllow {
		return nil, fmt.Errorf("node: an allow list of %d peers: want at most %d", len(allow), MaxAllow)
	}
	if len(allow) > 0 {
		a.allow = make(map[peer.ID]bool, len(allow))
		for _, p := range allow {
			a.allow[p] = true
		}
	}
	return a, nil
}

// open reports whether everybody may come in.
func (a *access) open() bool { return a.proof == nil && a.allow == nil }

func (a *access) allowed(p peer.ID) bool { return a.allow == nil || a.allow[p] }

// options put the access between libp2p's parts. Every transport is guarded,
// whoever brought it, and the upgrader that turns a socket into a connection.
func (a *access) options() []libp2p.Option {
	options := []libp2p.Option{libp2p.WithFxOption(fx.Decorate(a.upgrader)), libp2p.ConnectionGater(gater{a})}
	if a.open() {
		return options
	}
	return append(options, libp2p.WithFxOption(fx.Decorate(
		fx.Annotate(a.guardAll, fx.ParamTags(`group:"transport"`), fx.ResultTags(`group:"transport"`)))))
}

func (a *access) guardAll(all []transport.Transport) []transport.Transport {
	guarded := make([]transport.Transport, len(all))
	for i, t := range all {
		guarded[i] = &guard{t, a}
	}
	return guarded
}

// A guard is a transport whose connections have been admitted.
type guard struct {
	transport.Transport
	access *access
}

func (g *guard) Dial(ctx context.Context, to multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	return g.DialWithUpdates(ctx, to, p, nil)
}

// DialWithUpdates is in the interface of transports that report their progress;
// of another there is none to report.
func (g *guard) DialWithUpdates(ctx context.Context, to multiaddr.Multiaddr, p peer.ID, news chan<- transport.DialUpdate) (transport.CapableConn, error) {
	dial := g.Transport.Dial
	if u, ok := g.Transport.(transport.DialUpdater); ok {
		dial = func(ctx context.Context, to multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
			return u.DialWithUpdates(ctx, to, p, news)
		}
	}
	c, err := dial(ctx, to, p)
	if err != nil {
		return nil, err
	}
	if err := g.access.prove(ctx, c, asks(ctx)); err != nil {
		return nil, err
	}
	return c, nil
}

// asks tells the dialler that dialled from the one that, while a hole is being
// punched, plays the part of the side that was dialled.
func asks(ctx context.Context) bool {
	punching, client, _ := network.GetSimultaneousConnect(ctx)
	return !punching || client
}

func (g *guard) Listen(on multiaddr.Multiaddr) (transport.Listener, error) {
	l, err := g.Transport.Listen(on)
	if err != nil {
		return nil, err
	}
	return g.access.listener(l), nil
}

// Close closes the transport below, if it is one to be closed.
func (g *guard) Close() error {
	if c, ok := g.Transport.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Resolve is what the transport below makes of a name.
func (g *guard) Resolve(ctx context.Context, name multiaddr.Multiaddr) ([]multiaddr.Multiaddr, error) {
	if r, ok := g.Transport.(transport.Resolver); ok {
		return r.Resolve(ctx, name)
	}
	return []multiaddr.Multiaddr{name}, nil
}

// SkipResolve likewise.
func (g *guard) SkipResolve(ctx context.Context, name multiaddr.Multiaddr) bool {
	r, ok := g.Transport.(transport.SkipResolver)
	return ok && r.SkipResolve(ctx, name)
}

// prove runs the proof on a new connection, and closes it if that fails.
func (a *access) prove(ctx context.Context, c transport.CapableConn, asks bool) error {
	if a.proof == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		c.CloseWithError(CodeSecret) // frees a call that waits
	})
	err := a.converse(ctx, c, asks)
	if !stop() {
		<-gone
		err = fmt.Errorf("no proof of the secret: %w", context.Cause(ctx))
	}
	if err != nil {
		err = refusalOf(err)
		c.CloseWithError(CodeSecret)
	}
	return err
}

func (a *access) converse(ctx context.Context, c transport.CapableConn, asks bool) error {
	open, part := c.OpenStream, ask
	if !asks {
		open = func(context.Context) (network.MuxedStream, error) { return c.AcceptStream() }
		part = answer
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	if err := part(s, a.proof, c.LocalPeer(), c.RemotePeer()); err != nil {
		if !asks && errors.Is(err, errTold) {
			s.SetReadDeadline(time.Now().Add(farewell))
			s.Read(make([]byte, 1)) // returns when the other side has read the verdict and closed
		}
		s.Reset()
		return err
	}
	s.Close() // may fail: the other side has closed it as well, and all has been said
	return nil
}

// refusals is the log of those who were not admitted. Strangers decide how often
// it is called, so it is rate-limited.
type refusals struct {
	mu       sync.Mutex
	next     time.Time
	unlogged int
}

// due reports whether a refusal is to be logged now, and how many were not.
func (r *refusals) due(now time.Time) (unlogged int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		r.unlogged++
		return 0, false
	}
	unlogged, r.unlogged, r.next = r.unlogged, 0, now.Add(refusalEvery)
	return unlogged, true
}

func (r *refusals) add(who string, from multiaddr.Multiaddr, why error) {
	if unlogged, ok := r.due(time.Now()); ok {
		logger.Warnf("refused %s at %s: %v (%d more refusals since the last report)", who, from, why, unlogged)
	}
}
