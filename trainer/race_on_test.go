//go:build race

package trainer

// UnderRace says that the race detector watches every element of every loop.
const UnderRace = true
