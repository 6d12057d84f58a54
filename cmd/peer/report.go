package main

import (
	"io"
	"time"
)

// A reporter tells a person, or a program, how the training goes. Its errors
// are those of its writer.
type reporter interface {
	listening(ways []entrance, addrs []string) error // how the others find this peer; addrs are all it has
	started(s startFacts) error                      // the world stands, the model is built
	world(w worldFacts) error                        // a world stands, before anything is done in it
	ended(w worldFacts) error                        // it has ended, and the run goes on
	step(s stepFacts) error                          // after every step
	epoch(e epochFacts) error                        // after every epoch
	done(e epochFacts, accuracy float64) error       // at the end
}

// A worldFacts describes one of the mesh's worlds.
type worldFacts struct {
	epoch      uint64 // the mesh's count of worlds, not the training's of data
	rank, size int
	peer       string // this rank's peer ID
	relayed    []int  // ranks that are reached through a relay only
	cause      error  // why the world before has ended, or in ended this one; nil before the first
}

// A startFacts describes the run before its first step.
type startFacts struct {
	rank, world int
	peer        string // this rank's peer ID
	net         string
	parameters  int
	epochs      int
	steps       int // of all epochs together
	batch       int
	threads     int
}

// A stepFacts describes one step of this rank.
type stepFacts struct {
	epoch, step int  // from 1; step counts within the epoch
	steps       int  // of this epoch
	taken       int  // since the beginning of the run
	first       bool // in its world
	loss        float64
	samples     int     // of the epoch so far, all ranks together
	bytes       float64 // that this rank sends and receives, a second; 0: not known
	elapsed     time.Duration
}

// An epochFacts describes an epoch of the whole world.
type epochFacts struct {
	epoch    int           // from 1
	steps    int           // since the beginning of the run
	loss     float64       // mean over the epoch's steps and all ranks
	lastLoss float64       // mean over all ranks, last step alone
	losses   []float64     // mean over the epoch's steps, of each rank
	hash     string        // of the parameters, alike on all ranks
	samples  int           // of this epoch, all ranks together; in done: of the run
	marks    float64       // the sum of their marks: see ledger.go
	elapsed  time.Duration // this epoch; in done: the run
}

// rate is in samples a second; a run too short to be measured has none.
func rate(samples int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(samples) / d.Seconds()
}

// newReporter chooses by the flags and by what stdout is.
func newReporter(format string, w io.Writer, rank, world, columns int) reporter {
	if format == "json" {
		return &jsonReporter{w: w, rank: rank, size: world, now: time.Now}
	}
	return &textReporter{w: w, rank: rank, size: world, columns: max(0, columns)}
}
