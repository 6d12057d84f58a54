package node

import (
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/x/rate"
)

// libp2p's own limits suit a node of a public network that serves strangers:
// 252 inbound connections, 75 inbound streams of one protocol and peer, 8
// connections an IP address, trimming at 160. A world of a few hundred ranks,
// several of them on one machine, runs into all of them. Ours follow from the
// number of peers instead.
const (
	// MaxPeerStreams bounds the streams that one peer may have open towards us, and
	// we towards it.
	MaxPeerStreams = 512
	// peerMemory is what one peer's streams may hold in buffers: a Window each on TCP,
	// and some more for those that have come and are not counted yet. QUIC lets a busy
	// stream grow to several MiB, but all of a connection to 15 MiB at most. That counts
	// payload, and what small frames take beside it: see ledger.
	peerMemory = 2*MaxPeerStreams*Window + 64<<20
	// shareMemory is what all peers together may hold, for each that is expected.
	shareMemory = 128 << 20
	// peerConns leaves room for the doubles of peers that dial each other at the
	// same time, over each of two transports.
	peerConns = 8
	// strangers is the room beside the expected peers.
	strangers = 128
	// grace is how long a new connection is safe from being trimmed.
	grace = time.Minute
)

// room is the number of connections to be ready for.
func room(peers int) int { return 4*peers + strangers }

func resources(peers int) (network.ResourceManager, error) {
	conns := room(peers)
	streams := rcmgr.LimitVal(conns) * 256
	few := rcmgr.ResourceLimits{
		Conns: rcmgr.LimitVal(conns), ConnsInbound: rcmgr.LimitVal(conns), ConnsOutbound: rcmgr.LimitVal(conns),
		FD: rcmgr.LimitVal(conns), Streams: 2 * streams, StreamsInbound: streams, StreamsOutbound: streams,
		Memory: rcmgr.LimitVal64(peerMemory + int64(peers)*shareMemory),
	}
	each := rcmgr.ResourceLimits{
		Conns: peerConns, ConnsInbound: peerConns, ConnsOutbound: peerConns, FD: peerConns,
		Streams: 2 * MaxPeerStreams, StreamsInbound: MaxPeerStreams, StreamsOutbound: MaxPeerStreams,
		Memory: peerMemory,
	}
	limits := rcmgr.PartialLimitConfig{
		System: few, Transient: few,
		ServiceDefault: few, ProtocolDefault: few,
		ServicePeerDefault: each, ProtocolPeerDefault: each, PeerDefault: each,
		Conn:   rcmgr.ResourceLimits{Memory: peerMemory},
		Stream: rcmgr.ResourceLimits{Memory: 64 << 20},
	}.Build(rcmgr.DefaultLimits.AutoScale())
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: conns}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: conns}}),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{Network: loopback4, ConnCount: math.MaxInt}},
			[]rcmgr.NetworkPrefixLimit{{Network: loopback6, ConnCount: math.MaxInt}}),
		rcmgr.WithConnRateLimiters(arrivals(conns)))
}

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

// arrivals lets all peers of a machine connect at once, and each again every
// few seconds, as they do while a world forms.
func arrivals(conns int) *rate.Limiter {
	many := rate.Limit{RPS: float64(conns), Burst: 4 * conns}
	return &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: loopback4}, {Prefix: loopback6}},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: many}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: many}},
			GracePeriod:      time.Minute,
		},
	}
}

// connections trims strangers only: members are protected.
func connections(peers int) (*connmgr.BasicConnMgr, error) {
	return connmgr.NewConnManager(2*peers+strangers/2, 3*peers+strangers, connmgr.WithGracePeriod(grace))
}
