//go:build race

package main

// raceDetector is whether the race detector watches.
const raceDetector = true
