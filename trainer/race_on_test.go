//go:build race

package trainer_test

// underRace says that the race detector watches every element of every loop.
const underRace = true
