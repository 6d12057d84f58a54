package main

import (
	"encoding/json"
	"io"
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
	Loss             *float64 `json:"loss,omitempty"`
	LastLoss         *float64 `json:"last_loss,omitempty"`
	RankLoss         *float64 `json:"rank_loss,omitempty"`
	Accuracy         *float64 `json:"accuracy,omitempty"`
	ParamsHash       string   `json:"params_hash,omitempty"`
	SamplesPerSecond float64  `json:"samples_per_second,omitempty"`
	Seconds          float64  `json:"seconds,omitempty"`
}

// A jsonReporter writes one object a line, for programs.
type jsonReporter struct {
	w           io.Writer
	rank, world int
}

func (r *jsonReporter) write(e event) error {
	e.Rank, e.World = r.rank, r.world
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(line, '\n'))
	return err
}

func (r *jsonReporter) listening(_, addrs []string) error {
	return r.write(event{Event: "listening", Addrs: addrs})
}

func (r *jsonReporter) started(startFacts) error { return nil }
func (r *jsonReporter) step(stepFacts) error     { return nil }

func (r *jsonReporter) epoch(e epochFacts) error { return r.write(r.result("epoch", e)) }

func (r *jsonReporter) done(e epochFacts, accuracy float64) error {
	last := r.result("done", e)
	last.Epoch, last.Epochs, last.Accuracy = 0, e.epoch, &accuracy
	return r.write(last)
}

func (r *jsonReporter) result(name string, e epochFacts) event {
	return event{
		Event: name, Epoch: e.epoch, Steps: e.steps,
		Loss: finite(e.loss), LastLoss: finite(e.lastLoss), RankLoss: finite(e.rankLoss),
		ParamsHash: e.hash, Seconds: e.elapsed.Seconds(), SamplesPerSecond: rate(e.samples, e.elapsed),
	}
}

// finite is nil for what JSON cannot say: a loss that has become NaN or infinite.
func finite(x float64) *float64 {
	if x-x != 0 {
		return nil
	}
	return &x
}
