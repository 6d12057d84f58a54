// Package testnet runs whole worlds in one process: real libp2p nodes on
// loopback, met and ranked as they would be on many machines. It is for tests of
// programs that train on Peermesh, and for programs that want several ranks
// without several processes.
//
//	func TestMine(t *testing.T) {
//		net := testnet.New(t, 4)
//		err := net.Run(func(g *ops.Group) error { return train(t.Context(), g) })
//		...
//	}
//
// New starts the nodes, waits until they stand as one world, and takes them down
// with the test. Start does the same outside of tests. Kill takes a rank away as
// the death of its process would.
//
// Where neither sockets nor identities matter, package testnet/memnet has worlds
// that are a thousand times lighter. Package testnet/conform is the suite that
// both kinds pass, and that a Transport of one's own should.
package testnet
