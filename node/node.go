package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"

	"peermesh/node/internal/memory"
	"peermesh/node/internal/shm"
	"peermesh/node/internal/tcp"

	"github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/multiformats/go-multiaddr"
)

// userAgent is what identify tells other libp2p programs.
const userAgent = "peermesh"

// A Node is one libp2p host: an identity, its addresses and its streams.
type Node struct {
	host    host.Host
	access  *access
	ctx     context.Context // ends when Close begins
	cancel  context.CancelCauseFunc
	relay   io.Closer // of Config.Relay, or nil
	nat     bool      // Config.NAT
	punches bool      // holes for direct connections

	mu       sync.Mutex
	handlers map[protocol.ID]*handler
	tidy     group // resets and closes under way
	calls    group // of Connect and Open

	once sync.Once
	err  error // of the one Close
}

// AddrInUseError is what Start returns when another process, or another node
// of this one, listens on a wanted address.
type AddrInUseError struct {
	Addr multiaddr.Multiaddr
	Err  error
}

func (e *AddrInUseError) Error() string {
	return fmt.Sprintf("node: cannot listen on %s: address in use", e.Addr)
}

func (e *AddrInUseError) Unwrap() error { return e.Err }

// oneLog sends libp2p's log, which is slog's, through go-log: one set-up of
// levels and format serves both.
var oneLog = sync.OnceFunc(func() { gologshim.SetDefaultHandler(log.SlogHandler()) })

// Start brings up a node. It listens when Start returns. ctx bounds the start,
// not the node's life, which ends with Close.
func Start(ctx context.Context, c Config) (*Node, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("node: not started: %w", context.Cause(ctx))
	}
	p, err := c.plan()
	if err != nil {
		return nil, err
	}
	key := c.Key
	if key == nil {
		if key, err = identity(c.Identity); err != nil {
			return nil, err
		}
	}
	oneLog()
	h, err := p.host(key)
	if err != nil {
		return nil, err
	}
	n := &Node{host: h, access: p.access, nat: c.NAT, punches: p.relay.punches(), handlers: make(map[protocol.ID]*handler)}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.relay, err = p.relay.start(h)
	if err == nil {
		err = n.listen(p)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	p.relay.prepare(ctx, h)
	return n, nil
}

// host makes the libp2p host.
func (p plan) host(key crypto.PrivKey) (host.Host, error) {
	limits, err := resources(p.peers)
	if err != nil {
		return nil, fmt.Errorf("node: limits for %d peers: %w", p.peers, err)
	}
	manager, err := connections(p.peers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("node: limits for %d peers: %w", p.peers, err), limits.Close())
	}
	var h host.Host
	if p.lean() {
		h, err = p.assemble(key, limits, manager)
	} else {
		h, err = libp2p.New(append(p.options(), libp2p.ResourceManager(limits), libp2p.ConnectionManager(manager), libp2p.Identity(key))...)
	}
	if err != nil { // libp2p leaves them running
		return nil, errors.Join(fmt.Errorf("node: cannot start libp2p: %w", err), limits.Close(), manager.Close())
	}
	return h, nil
}

// options are for a host that does what is asked and nothing else: no relay unless
// asked, no port mapping, no guessing of public addresses, no metrics.
func (p plan) options() []libp2p.Option {
	options := []libp2p.Option{
		libp2p.NoListenAddrs, // listen reports each failure; libp2p reports only the last of all
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, muxer()),
		libp2p.SwarmOpts(swarm.WithDialRanker(p.relay.ranker())),
		libp2p.UserAgent(userAgent),
		libp2p.Ping(false),
		libp2p.DisableMetrics(),
		libp2p.UDPBlackHoleSuccessCounter(nil),  // a peer that starts late is
		libp2p.IPv6BlackHoleSuccessCounter(nil), // no proof of a black hole
	}
	for _, t := range p.transports {
		switch t {
		case TCP:
			options = append(options, libp2p.Transport(tcp.New))
		case QUIC:
			options = append(options, libp2p.Transport(quic.NewTransport))
		case Memory:
			options = append(options, libp2p.Transport(memory.New))
		case Shm:
			options = append(options, libp2p.Transport(shm.New))
		}
	}
	if p.bring != nil {
		options = append(options, libp2p.Transport(p.bring))
	}
	options = append(options, p.access.options()...)
	options = append(options, p.relay.options()...)
	return append(options, p.more...)
}

// listen asks for every address by itself, because libp2p is content with one.
func (n *Node) listen(p plan) error {
	network, ok := n.host.Network().(interface {
		AddListenAddr(multiaddr.Multiaddr) error
	})
	if !ok {
		return fmt.Errorf("node: %T cannot listen", n.host.Network())
	}
	var failed error
	for _, a := range p.listen {
		err := network.AddListenAddr(a)
		switch {
		case err == nil:
			continue
		case errors.Is(err, syscall.EADDRINUSE):
			err = &AddrInUseError{Addr: a, Err: err}
		default:
			err = fmt.Errorf("node: cannot listen on %s: %w", a, err)
		}
		failed = errors.Join(failed, err)
	}
	for _, a := range p.beside {
		if err := network.AddListenAddr(a); err != nil {
			logger.Warnf("no shared memory with other peers of this machine: %v", err)
		}
	}
	if p.optional && len(n.host.Network().ListenAddresses()) > 0 {
		return nil // a machine without IPv6, say
	}
	return failed
}

// ID is the hash of the node's public key: what other peers know it by.
func (n *Node) ID() peer.ID { return n.host.ID() }

// Addrs holds the addresses at which others can reach the node, each with
// /p2p/ID: what ParseAddr reads.
func (n *Node) Addrs() []multiaddr.Multiaddr {
	addrs, err := peer.AddrInfoToP2pAddrs(host.InfoFromHost(n.host))
	if err != nil {
		panic("node: a host without a peer ID: " + err.Error())
	}
	// Those that lead here from this machine only come last.
	far := slices.DeleteFunc(slices.Clone(addrs), isLocal)
	near := slices.DeleteFunc(addrs, func(a multiaddr.Multiaddr) bool { return !isLocal(a) })
	return append(far, near...)
}

// Host is the libp2p host below, for protocols that are not ours, such as
// pubsub. Streams opened by way of it are not waited for by Close.
func (n *Node) Host() host.Host { return n.host }

// Context ends when Close begins. Whoever sees a stream break can tell by it
// which side went away.
func (n *Node) Context() context.Context { return n.ctx }

// Close ends every stream and connection, and waits for all handlers. Later
// calls return the result of the first. A relay stays, for a second at most, while
// others are connected through it.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.cancel(ErrClosed)
		n.mu.Lock()
		handlers := n.handlers
		n.handlers = make(map[protocol.ID]*handler)
		n.mu.Unlock()
		for _, h := range handlers { // before the connections break, so that streams know why
			h.cancel(ErrClosed)
		}
		n.access.shut.Store(true)
		n.calls.wait()
		if n.relay != nil {
			n.linger()
			n.err = n.relay.Close()
		}
		if err := n.host.Close(); err != nil {
			n.err = fmt.Errorf("node: closing: %w", err)
		}
		for _, h := range handlers {
			h.end()
		}
		n.tidy.wait()
	})
	return n.err
}
