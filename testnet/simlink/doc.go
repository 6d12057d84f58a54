// Package simlink is a network in memory whose links have latency, rates, jitter
// and loss, and whose hosts fail on request. It is a libp2p transport, so what runs
// on it is real: nodes, meshes and groups, as many as there are hosts.
//
//	net := simlink.New(simlink.Config{
//		Seed: 1,
//		Link: simlink.Link{Latency: 10 * time.Millisecond},
//		Port: simlink.Port{Up: 10e6, Down: 100e6},
//	})
//	defer net.Close()
//	n, err := node.Start(ctx, net.Host(0).Config())
//	…
//	net.Cut(0, 1)
//
// # Time
//
// All waiting is the time package's. In a bubble of testing/synctest a network has
// virtual time therefore: an hour costs nothing, and a world that waits for ever is
// a failed test. Make, use and close the network, and everything on it, inside of
// the bubble. Outside of one it runs in real time, as exactly as timers do.
//
// A world of eight nodes forms, computes and closes in some 30 ms on one processor of its
// own, and in 50 ms where its goroutines may run on two, which is no help: they mostly
// wait for each other. A thousand of them, two at a time, take 23 s. RememberSignatures
// in TestMain is part of what makes it that cheap.
//
// # What a packet goes through
//
// A write is copied to the stream's buffer. Its packets, of PacketSize and a
// Header at most, leave when the receiver's window has room, the streams of a host
// taking turns; they pass the host's uplink, the way, its latency, jitter and loss,
// and the other's downlink, through which bits flow without waiting for each other.
// Each of the three is a pipe with a rate, in order, and packets of one way stay in
// order. Nothing that was sent is lost for good: loss is delay, as in TCP.
// A connection costs one round trip and is not encrypted: the network itself
// vouches for who is at its ends.
//
// # The same again
//
// Identities, jitter and loss follow from Config.Seed. What is written at one instant
// leaves a little later, when in a bubble every goroutine has come to rest, in an
// order that follows from what it is, not from which goroutine was first. For the
// same reason instants are kept apart: packets leave in the middle of a microsecond
// and land at each host at a place in the microsecond of its own, one at a time. A
// timer that a node sets for whole microseconds then fires when nothing else happens.
// This costs up to a microsecond on either side of a way.
//
// What remains is what the programs on the hosts decide by chance: two goroutines
// that race for one lock at one instant, the order of a map, random numbers of their
// own. Exact takes away the first. Then a world of nodes gives the same Trace for the
// same seed, byte for byte, while it stands: in more than seven the gossip draws whom
// it tells, and how it closes its streams is a choice of select.
//
// # Faults
//
// Kill is the death of a process, Freeze its stop, Cut a way that swallows all,
// SetLink and Shape another speed; Restart, Thaw and Heal take them back. Clocks
// are the process's own, so neither skew nor the stop of a frozen host's timers can
// be had.
package simlink
