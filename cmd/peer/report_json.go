package main

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// An event is one line of --log json. Fields that an event does not have are
// left out; doc.go lists which has which. The names are a contract: programs
// read them.
type event struct {
	Event            string   `json:"event"` // "listening", "world", "resumed", "ended", "epoch" or "done"
	Time             string   `json:"time"`
	Rank             int      `json:"rank"`
	World            int      `json:"world"`
	Addrs            []string `json:"addrs,omitempty"`
	Epoch            int      `json:"epoch,omitempty"`
	Epochs           int      `json:"epochs,omitempty"`
	Steps            int      `json:"steps,omitempty"`
	Loss             *number  `json:"loss,omitempty"`
	LastLoss         *number  `json:"last_loss,omitempty"`
	Losses           []number `json:"losses,omitempty"`
	Accuracy         *number  `json:"accuracy,omitempty"`
	ParamsHash       string   `json:"params_hash,omitempty"`
	SamplesPerSecond *number  `json:"samples_per_second,omitempty"`
	Seconds          *number  `json:"seconds,omitempty"`
	Size             int      `json:"size,omitempty"`
	Peer             string   `json:"peer,omitempty"`
	Relayed          []int    `json:"relayed,omitempty"`
	Cause            string   `json:"cause,omitempty"`
	LostRank         *int     `json:"lost_rank,omitempty"`
	LostPeer         string   `json:"lost_peer,omitempty"`
	Samples          int      `json:"samples,omitempty"`
	SamplesSum       float64  `json:"samples_sum,omitempty"`
}

// A number is written as null where JSON has no word for it: a loss that has
// become infinite or not a number.
type number float64

// MarshalJSON writes a number as encoding/json does, or null.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// timeFormat is RFC 3339 to the microsecond: what several ranks of one machine write
// can be put in order.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// A jsonReporter writes one object a line, for programs.
type jsonReporter struct {
	w          io.Writer
	rank, size int
	worlds     int // so far
	now        func() time.Time
}

// write completes an event and writes it in one piece, so that lines of several
// processes that share a file stay whole.
func (r *jsonReporter) write(e event) error {
	e.Rank, e.World, e.Time = r.rank, r.size, r.now().UTC().Format(timeFormat)
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(line, '\n'))
	return err
}

func (r *jsonReporter) listening(_ []entrance, addrs []string) error {
	return r.write(event{Event: "listening", Addrs: addrs})
}

func (r *jsonReporter) world(w worldFacts) error {
	r.rank, r.size = w.rank, w.size
	r.worlds++
	return r.write(r.about("world", w))
}

func (r *jsonReporter) ended(w worldFacts) error { return r.write(r.about("ended", w)) }

// about is what is said of a world at its beginning and at its end.
func (r *jsonReporter) about(name string, w worldFacts) event {
	e := event{Event: name, Epoch: int(w.epoch), Size: w.size, Peer: w.peer, Relayed: w.relayed}
	if w.cause == nil {
		return e
	}
	e.Cause = w.cause.Error()
	if rank, peer := fault(w.cause); rank >= 0 {
		e.LostRank, e.LostPeer = &rank, peer
	}
	return e
}

// The start has nothing that the first epoch does not say.
func (r *jsonReporter) started(startFacts) error { return nil }

// Steps are too many for lines of their own; but the first one of a later world
// shows that the run goes on.
func (r *jsonReporter) step(s stepFacts) error {
	if !s.first || r.worlds < 2 {
		return nil
	}
	return r.write(event{Event: "resumed", Epoch: s.epoch, Steps: s.taken})
}

func (r *jsonReporter) epoch(e epochFacts) error { return r.write(r.result("epoch", e)) }

func (r *jsonReporter) done(e epochFacts, accuracy float64) error {
	last := r.result("done", e)
	last.Epoch, last.Epochs, last.Accuracy, last.SamplesSum = 0, e.epoch, new(number(accuracy)), 0
	return r.write(last)
}

// result is what an epoch's line and the last one have in common.
func (r *jsonReporter) result(name string, e epochFacts) event {
	line := event{
		Event: name, Epoch: e.epoch, Steps: e.steps, Loss: new(number(e.loss)), LastLoss: new(number(e.lastLoss)),
		ParamsHash: e.hash, Samples: e.samples, SamplesSum: e.marks, Seconds: new(number(e.elapsed.Seconds())), SamplesPerSecond: new(number(rate(e.samples, e.elapsed))),
	}
	for _, loss := range e.losses {
		line.Losses = append(line.Losses, number(loss))
	}
	return line
}
