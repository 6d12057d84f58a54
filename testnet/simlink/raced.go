//go:build race

package simlink

// Raced says that the race detector is in this program, so that no two runs are alike,
// not even with Exact.
const Raced = true
