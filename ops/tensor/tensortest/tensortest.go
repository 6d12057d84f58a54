// Package tensortest says what a tensor.Memory must do, as a suite that every
// back end passes: the host's, a GPU's, your own.
//
//	func TestMemory(t *testing.T) {
//		tensortest.TestMemory(t, func(bytes int) tensor.Memory { return open(t, bytes) })
//	}
//
// It also has the reference arithmetic (Reduce, Scale, Divide, Equal) and the
// awkward values (Fill) that kernels are tested against.
package tensortest

import (
	"testing"

	"peermesh/ops/tensor"
)

// size of the memories under test in bytes, enough for every vector width and
// for a kernel's tail, small enough to try all lengths.
const size = 1024

// A check tries one property of a fresh memory of size bytes.
type check struct {
	name string
	run  func(m tensor.Memory) error
}

var checks = []check{
	{"ReadWrite", checkReadWrite},
	{"Empty", checkEmpty},
	{"OutOfRange", checkOutOfRange},
	{"Reduce", checkReduce},
	{"Steps", checkSteps},
	{"Func", checkFunc},
	{"Arguments", checkArguments},
	{"Disjoint", checkDisjoint},
	{"View", checkView},
}

// TestMemory holds a kind of memory to the contract of tensor.Memory and, where
// it has a View, of tensor.Viewer. alloc gives a memory of that many bytes,
// whose contents may be anything, at an address aligned for every element type.
func TestMemory(t *testing.T, alloc func(bytes int) tensor.Memory) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(alloc(size)); err != nil {
				t.Error(err)
			}
		})
	}
}
