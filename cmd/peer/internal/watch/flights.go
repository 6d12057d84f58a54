package watch

import (
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
)

// maxFlights bounds the operations in flight that are shown.
const maxFlights = 512

// A Flight is an operation in flight, for people.
type Flight struct {
	Op      string  `json:"op"`
	Group   uint32  `json:"group"`
	Ranks   int     `json:"ranks"`
	Peer    *int    `json:"peer,omitempty"` // of a message; −1 is any
	Bytes   int64   `json:"bytes"`
	Via     string  `json:"via,omitempty"` // the schedule
	Started bool    `json:"started"`       // or else it waits for its turn
	Seconds float64 `json:"seconds"`       // since it was issued
}

// inFlight lists what is, the oldest first.
func inFlight(r *flight.Recorder, now time.Time) []Flight {
	list := []Flight{}
	for _, f := range r.InFlight(maxFlights) {
		one := Flight{Op: f.Call.String(), Group: f.Group, Ranks: f.Size, Bytes: f.Bytes, Via: f.Algorithm,
			Started: f.Started, Seconds: now.Sub(f.Begun).Seconds()}
		if f.Kind == ops.KindSend {
			one.Peer = new(f.Peer)
		}
		list = append(list, one)
	}
	return list
}

// A Kind is what is known of the operations of one kind, for people.
type Kind struct {
	Kind   string  `json:"kind"`
	Count  int64   `json:"count"`
	Failed int64   `json:"failed"`
	Bytes  int64   `json:"bytes"`
	Mean   float64 `json:"mean"` // seconds

	counted flight.Count
}

// ended lists the kinds of which any operation has.
func ended(r *flight.Recorder) []Kind {
	list := []Kind{}
	for _, c := range r.Counts() {
		list = append(list, Kind{c.Kind.String(), c.Ended, c.Failed, c.Bytes, c.Time.Seconds() / float64(c.Ended), c})
	}
	return list
}
