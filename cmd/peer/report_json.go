package main

import (
	"encoding/json"
	"io"
	"math"
)

// An event is one line of --log json. Fields that an event does not have are
// left out; doc.go lists which has which. The names are a contract: programs
// read them.
type event struct {
	Event            string   `json:"event"` // "listening", "epoch" or "done"
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

// A jsonReporter writes one object a line, for programs.
type jsonReporter struct {
	w           io.Writer
	rank, world int
}

// write completes an event and writes it in one piece, so that lines of several
// processes that share a file stay whole.
func (r *jsonReporter) write(e event) error {
	e.Rank, e.World = r.rank, r.world
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

// Steps are too many for lines of their own, and the start has nothing that the
// first epoch does not say.

func (r *jsonReporter) started(startFacts) error { return nil }
func (r *jsonReporter) step(stepFacts) error     { return nil }

func (r *jsonReporter) epoch(e epochFacts) error { return r.write(r.result("epoch", e)) }

func (r *jsonReporter) done(e epochFacts, accuracy float64) error {
	last := r.result("done", e)
	last.Epoch, last.Epochs, last.Accuracy = 0, e.epoch, new(number(accuracy))
	return r.write(last)
}

// result is what an epoch's line and the last one have in common.
func (r *jsonReporter) result(name string, e epochFacts) event {
	line := event{
		Event: name, Epoch: e.epoch, Steps: e.steps, Loss: new(number(e.loss)), LastLoss: new(number(e.lastLoss)),
		ParamsHash: e.hash, Seconds: new(number(e.elapsed.Seconds())), SamplesPerSecond: new(number(rate(e.samples, e.elapsed))),
	}
	for _, loss := range e.losses {
		line.Losses = append(line.Losses, number(loss))
	}
	return line
}
