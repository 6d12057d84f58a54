// Package memnet makes worlds whose links are queues in this process: no
// sockets, no identities, no clock. Tests of collectives and of training run
// on it in microseconds, and inside a testing/synctest bubble, where a
// deadlock is a failed test.
//
//	for _, w := range memnet.New(4) {
//		g := ops.NewGroup(w, ops.Config{}) // one goroutine a rank from here on
//	}
//
// A [World] keeps the contract of ops.Transport to the letter: bounded lanes
// that push back, messages that stay when they are not accepted, a world that
// ends once and for everyone. What it does not model is time: for latency,
// rates and loss use package testnet.
package memnet
