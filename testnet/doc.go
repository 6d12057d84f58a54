// Package testnet runs whole worlds in one process: real libp2p nodes, met and
// ranked as they would be on many machines, over a network of one's choice. It is for
// tests of programs that train on Peermesh, and for programs that want several ranks
// without several processes.
//
//	func TestMine(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			net := testnet.New(t, testnet.Config{
//				Nodes: 4, Network: testnet.Model,
//				Link: simlink.Link{Latency: 20 * time.Millisecond},
//			})
//			time.AfterFunc(time.Minute, func() { net.Kill(2) })
//			err := net.Run(func(g *ops.Group) error { return train(t.Context(), g) })
//			...
//		})
//	}
//
// New starts the nodes, waits until they stand as one world, and takes them down
// with the test. Start does the same outside of tests, where Virtual is the bubble.
//
// # Networks
//
// Memory connects nodes directly and is the default. Model has latency, rates,
// jitter and loss (package simlink), Packets is libp2p's QUIC over datagrams on
// such links, TCP and QUIC are the loopback's sockets. The first three run in a
// bubble of testing/synctest, where time is virtual and a deadlock a failed test;
// within Exact the same seed gives the same Trace on Memory and Model, as far as simlink
// says.
// On Model a schedule takes what schedule.Price says and a hundredth more, for
// headers; up to a third more where ranks run ahead of each other; and longer where
// a message is more than a stream's window.
//
// # Faults
//
// Kill and Restart work on every network; Freeze, Thaw, Cut, Heal, Slow and SetLink
// on Model and Packets. Form waits for the world after the one that a fault has
// ended. Skew, on every network, sets a node's clock wrong. Clocks that differ by less
// than the quarter of an hour for which an announcement holds do no harm; one that is
// further off is told so by whom it meets, which is part of the error of its Mesh.World,
// and a world that stands does not notice.
//
// # More
//
// Package scenario plays worlds that are written as text, with faults by time or by
// round, at random from a seed, shrunk when they fail. Package liar has peers that
// lie. Package conform holds transports to their contract, and groups on them to
// their results. Package planet prices schedules among ten thousand ranks, and package
// scale measures how worlds of real nodes grow: SCALE.md has what they say. Package memnet has worlds without nodes, a thousand times lighter.
package testnet
