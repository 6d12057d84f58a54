package testnet

import (
	"fmt"
	"slices"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/testnet/simlink"
)

// A Network is what carries the bytes of a Net.
type Network string

// The networks. Model and Packets have latency, rates and faults, and run in
// virtual time in a bubble of testing/synctest; Memory runs in a bubble too.
const (
	// Memory connects nodes directly in memory: the fastest, and the default.
	Memory Network = "memory"
	// Model is package simlink: modelled links, real nodes.
	Model Network = "model"
	// Packets is libp2p's own QUIC over simulated packets, which get lost.
	Packets Network = "packets"
	// TCP and QUIC are the loopback's sockets.
	TCP  Network = "tcp"
	QUIC Network = "quic"
)

// Networks are all of them.
func Networks() []Network { return []Network{Memory, Model, Packets, TCP, QUIC} }

// Virtual reports whether a Net of this network may run in a bubble of
// testing/synctest.
func (n Network) Virtual() bool { return n == Memory || n == Model || n == Packets }

const (
	// MaxNodes bounds the nodes of one Net: those of a world.
	MaxNodes = mesh.MaxWorld
	// formTimeout bounds the forming of a world under New.
	formTimeout = time.Minute
	// leaveTimeout bounds the leaving of one.
	leaveTimeout = 10 * time.Second
	// name is the mesh that the nodes of every Net are in.
	name = "testnet"
)

// Config says how many nodes stand on which network.
type Config struct {
	Nodes   int          // 1 to MaxNodes
	Network Network      // empty: Memory
	Seed    uint64       // of identities, and of what links do by chance
	Link    simlink.Link // between every two nodes, on Model and Packets
	Port    simlink.Port // of every node, likewise
	// Trace is told of every packet and fault on Model and Packets, as simlink.Config
	// says. On the others it is told of every message (Kind "message", Stream its lane)
	// that a rank has received by its Group, and of every Kill and Restart; of those of
	// one instant once it is over, the last at Close.
	Trace func(simlink.Event)
	// Skew is how far the clock of each node is ahead from the beginning; nil: none.
	Skew func(node int) time.Duration
	// Mesh is what every node joins with. Name, World and Bootstrap are filled in.
	Mesh mesh.Config
	// Ops is what every group is made with.
	Ops ops.Config
}

func (c Config) plan() (Config, error) {
	if c.Network == "" {
		c.Network = Memory
	}
	if !slices.Contains(Networks(), c.Network) {
		return c, fmt.Errorf("testnet: no network %q: want one of %q", c.Network, Networks())
	}
	if c.Nodes < 1 || c.Nodes > MaxNodes {
		return c, fmt.Errorf("testnet: %d nodes: want 1 to %d", c.Nodes, MaxNodes)
	}
	c.Mesh.Name, c.Mesh.World = name, c.Nodes
	return c, nil
}
