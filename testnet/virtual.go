package testnet

import (
	"testing"
	"testing/synctest"

	"peermesh/testnet/simlink"
)

// Virtual runs f in virtual time and returns when it has: time moves on as soon as
// everything in f waits, and a wait without end panics. It is a bubble of
// testing/synctest for those who have no *testing.T, such as programs. What f uses
// of channels, contexts and networks must be made in f, and all it starts must end.
func Virtual(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) { f() })
}

// Exact runs f, which starts a bubble of its own, so that the same seed gives the same
// trace: see simlink.Exact, and simlink.Raced for when it cannot.
func Exact(f func()) { simlink.Exact(f) }
