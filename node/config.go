package node

import (
	"fmt"
	"slices"

	"peermesh/node/internal/shm"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// The transports that a Config may name.
const (
	TCP  = "tcp"
	QUIC = "quic"
	// Shm connects nodes of one machine and user through shared memory. It is there
	// on Linux (amd64, arm64).
	Shm = "shm"
	// Memory connects nodes of one process, and no others.
	Memory = "memory"
	// None is no transport of the node's own: Transport or Options bring one, and
	// its addresses are taken as they are.
	None = "none"
)

// DefaultPeers is the number of peers that a zero Config expects.
const DefaultPeers = 64

// Config says how a node listens and who it is. Its zero value is a fresh
// identity that listens with TCP and QUIC on every interface and any port, and in
// shared memory for its own machine.
type Config struct {
	// Identity is the path of a private key file. If there is no such file, a new
	// key is written there, readable by its owner only. Empty: a fresh key that
	// lives as long as the node.
	Identity string

	// Key is the private key itself, for those who keep keys in another way than
	// in a file; Identity is empty then. Nil: as Identity says.
	Key crypto.PrivKey

	// Listen holds multiaddrs, such as /ip4/0.0.0.0/tcp/4001. Every one of them
	// must succeed. Empty: any port of every interface, for each transport.
	Listen []string

	// Transports is a subset of TCP, QUIC, Shm and Memory. Empty means TCP and QUIC,
	// and Shm where it is to be had. Memory and Shm are dialled before the others,
	// and TCP before QUIC: it is the faster of the two between machines that are
	// near each other, and it reports a dead process at once. Shm listens, on an
	// address of its own, also when Listen names only others.
	Transports []string

	// Peers is the number of peers to be ready for. Limits on connections,
	// streams and memory grow with it. Zero: DefaultPeers.
	Peers int

	// Secret is the pre-shared key of a private network, at least MinSecret random
	// bytes: see ReadSecret. A peer that cannot prove that it shares it is refused
	// before any protocol is served. Nil: no secret.
	Secret []byte

	// Allow lists the peers that may connect, and that may be dialled; members
	// and relays alike. See ReadAllow. Empty: anyone (who shares the secret).
	Allow []peer.ID

	// Relay lets peers without a reachable address meet through this node, which
	// must have one. Its limits suit training, not strangers: see relay.go.
	Relay bool

	// NAT is for a node that others cannot dial. It asks the Relays for an address
	// there, reaches others of its kind through theirs, and moves to direct
	// connections where a hole can be punched, which needs QUIC.
	NAT bool

	// Relays holds multiaddrs with /p2p/ID of nodes with Relay set, as a rule the
	// bootstrap peers. They are for NAT only, which can do without if it need only
	// dial others.
	Relays []string

	// Transport brings one more transport. It is how a test gives a node a network of
	// its own, with Transports: []string{None}.
	Transport Bring

	// Options are added to those of the libp2p host.
	Options []libp2p.Option
}

// everywhere holds, for each transport, the addresses of a zero Config.
var everywhere = map[string][]string{
	TCP:    {"/ip4/0.0.0.0/tcp/0", "/ip6/::/tcp/0"},
	QUIC:   {"/ip4/0.0.0.0/udp/0/quic-v1", "/ip6/::/udp/0/quic-v1"},
	Shm:    {}, // see plan.beside
	Memory: {"/memory/0"},
	None:   {},
}

// plan is a Config whose words have been understood.
type plan struct {
	transports []string
	listen     []multiaddr.Multiaddr
	optional   bool                  // one failed address does not matter: nobody asked for it by name
	beside     []multiaddr.Multiaddr // what is listened on beyond that, failing which there is a warning
	peers      int
	bring      Bring
	more       []libp2p.Option
	access     *access
	relay      relaying
}

func (c Config) plan() (plan, error) {
	p := plan{transports: c.Transports, peers: c.Peers, bring: c.Transport, more: c.Options}
	if len(p.transports) == 0 {
		p.transports = []string{TCP, QUIC}
		if shm.Available() == nil {
			p.transports = append(p.transports, Shm)
		}
	}
	for _, t := range p.transports {
		if everywhere[t] == nil {
			return plan{}, fmt.Errorf("node: unknown transport %q: want %q, %q, %q, %q or %q", t, TCP, QUIC, Shm, Memory, None)
		}
	}
	switch {
	case p.peers == 0:
		p.peers = DefaultPeers
	case p.peers < 0:
		return plan{}, fmt.Errorf("node: cannot expect %d peers", p.peers)
	}

	var err error
	if p.access, err = newAccess(c.Secret, c.Allow, p.peers); err != nil {
		return plan{}, err
	}
	if p.relay, err = c.relaying(p.access); err != nil {
		return plan{}, err
	}
	texts := c.Listen
	if len(texts) == 0 {
		p.optional = true
		for _, t := range p.transports {
			texts = append(texts, everywhere[t]...)
		}
	}
	for _, s := range texts {
		a, err := multiaddr.NewMultiaddr(s)
		if err != nil {
			return plan{}, fmt.Errorf("node: cannot listen on %q: not a multiaddr such as /ip4/0.0.0.0/tcp/4001: %w", s, err)
		}
		if t := transportOf(a); !slices.Contains(p.transports, t) && !slices.Contains(p.transports, None) {
			return plan{}, fmt.Errorf("node: cannot listen on %s: none of its transports %v speaks that", s, p.transports)
		}
		p.listen = append(p.listen, a)
	}
	return p, p.addShm(len(c.Transports) > 0)
}

// addShm has a node with shared memory listen there, if it does not do so yet. That
// may fail where nobody has asked for it by name.
func (p *plan) addShm(asked bool) error {
	listens := func(a multiaddr.Multiaddr) bool { return transportOf(a) == Shm }
	if !slices.Contains(p.transports, Shm) || slices.ContainsFunc(p.listen, listens) {
		return nil
	}
	a, err := shm.Address()
	switch {
	case err != nil:
		return fmt.Errorf("node: cannot use shared memory: %w", err)
	case asked:
		p.listen = append(p.listen, a)
	default:
		p.beside = append(p.beside, a)
	}
	return nil
}

// transportOf names the transport of an address; empty if it is none of ours.
func transportOf(a multiaddr.Multiaddr) string {
	if _, err := a.ValueForProtocol(multiaddr.P_TCP); err == nil {
		return TCP
	}
	if _, err := a.ValueForProtocol(multiaddr.P_QUIC_V1); err == nil {
		return QUIC
	}
	if _, err := a.ValueForProtocol(multiaddr.P_UNIX); err == nil {
		return Shm
	}
	if _, err := a.ValueForProtocol(multiaddr.P_MEMORY); err == nil {
		return Memory
	}
	return ""
}
