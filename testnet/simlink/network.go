package simlink

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// MaxHosts bounds the hosts of a network: what the addresses have room for.
	MaxHosts = 1 << 16
	// DefaultWindow is how many bytes a stream carries ahead of its reader, unless
	// Config says otherwise: that of a node's TCP stream.
	DefaultWindow = 1 << 20
	// DefaultPatience is how long a connection outlives a cut.
	DefaultPatience = 30 * time.Second
	// PacketSize is the most payload that travels as one, in bytes.
	PacketSize = 16 << 10
	// Header is what every packet weighs beside its payload, in bytes: that of IP,
	// TCP, a muxer's frame and a cipher's tag.
	Header = 80
	// tick is what the instants of a network are reckoned by: see instants in doc.go.
	tick = time.Microsecond
	// flushing is where in a tick packets leave.
	flushing = tick / 2
)

// Config says what the hosts of a network are like. The zero value is a network
// without latency, bound or loss.
type Config struct {
	Seed     uint64        // of identities, jitter and loss
	Hosts    int           // that stand from the beginning, their peer IDs in the order of their numbers
	Port     Port          // of every host, until Shape
	Link     Link          // of every two hosts, until SetLink
	Window   int           // bytes; zero: DefaultWindow
	Patience time.Duration // zero: DefaultPatience
	// Trace, if set, is told of every packet that arrives and every fault, in their
	// order. It must not block, nor call the network.
	Trace func(Event)
}

// A Network is some hosts and the ways between them, in this process.
type Network struct {
	config Config
	start  time.Time
	timer  *time.Timer
	stop   chan struct{}
	done   chan struct{}

	mu      sync.Mutex // guards the rest, and everything that is reachable from it
	closed  bool
	hosts   map[int]*Host
	ways    map[[2]int]*way
	queue   events
	planned uint64
	armed   bool
	alarm   time.Duration
	dirty   []*stream // with something to send
	turns   uint64    // of streams to send, so far
	unsent  []*dispatch
	flush   time.Duration // when the next flush is planned for; zero: none is
}

// New makes a network. In a bubble of testing/synctest it must be made, used and
// closed there.
func New(c Config) *Network {
	if c.Window <= 0 {
		c.Window = DefaultWindow
	}
	if c.Patience <= 0 {
		c.Patience = DefaultPatience
	}
	n := &Network{
		config: c, start: time.Now(), timer: time.NewTimer(time.Hour),
		stop: make(chan struct{}), done: make(chan struct{}),
		hosts: make(map[int]*Host), ways: make(map[[2]int]*way),
	}
	for i, key := range Keys(c.Seed, min(c.Hosts, MaxHosts)) {
		n.hosts[i] = newHost(n, i, key)
	}
	go n.loop()
	return n
}

// Close ends the network: hosts that still live lose all connections.
func (n *Network) Close() error {
	n.mu.Lock()
	again := n.closed
	if !again {
		for _, h := range n.sorted() {
			h.shut(errNetworkClosed)
		}
		n.closed = true
		close(n.stop)
		n.timer.Stop()
	}
	n.mu.Unlock()
	<-n.done
	return nil
}

var errNetworkClosed = errors.New("simlink: network closed")

// Host is the host of that number, from 0 to MaxHosts-1. Its identity follows
// from the seed and the number; a program that needs ranks to be numbers of hosts
// sets Config.Hosts.
func (n *Network) Host(i int) *Host {
	if i < 0 || i >= MaxHosts {
		panic(fmt.Sprintf("simlink: host %d: want 0 to %d", i, MaxHosts-1))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[i]
	if h == nil {
		h = newHost(n, i, Key(n.config.Seed, i))
		n.hosts[i] = h
	}
	return h
}

// Since is how long the network has been.
func (n *Network) Since() time.Duration { return n.now() }

// way is the direction from one host to another, made if it is new. The lock is
// held.
func (n *Network) way(from, to *Host) *way {
	key := [2]int{from.index, to.index}
	w := n.ways[key]
	if w == nil {
		w = &way{from: from, to: to, link: n.config.Link, pipe: pipe{rate: n.config.Link.Rate}, early: make(map[uint64]*packet)}
		n.ways[key] = w
	}
	return w
}

// both are the two directions between two hosts. The lock is held.
func (n *Network) both(a, b int) [2]*way {
	return [2]*way{n.way(n.hosts[a], n.hosts[b]), n.way(n.hosts[b], n.hosts[a])}
}

// sorted are the hosts by number. The lock is held.
func (n *Network) sorted() []*Host {
	hosts := make([]*Host, 0, len(n.hosts))
	for _, h := range n.hosts {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *Host) int { return cmp.Compare(a.index, b.index) })
	return hosts
}
