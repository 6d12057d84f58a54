//go:build race

package ops_test

// raceDetector is whether the race detector watches, which makes all of it ten
// times slower.
const raceDetector = true
