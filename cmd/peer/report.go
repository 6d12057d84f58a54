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
	step(s stepFacts) error                          // after every step
	epoch(e epochFacts) error                        // after every epoch
	done(e epochFacts, accuracy float64) error       // at the end
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
	epoch, step int // from 1; step counts within the epoch
	steps       int // of this epoch
	loss        float64
	samples     int // of the epoch so far, all ranks together
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
	samples  int           // of this epoch, all ranks together
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
		return &jsonReporter{w: w, rank: rank, world: world}
	}
	t := &textReporter{w: w, rank: rank, world: world}
	if rank == 0 && columns > 0 {
		t.columns = columns
	}
	return t
}
