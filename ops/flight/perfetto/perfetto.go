// Package perfetto writes timelines that ui.perfetto.dev and Chrome's about:tracing
// show: the Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// A timeline has processes, a process has tracks, and a track has slices, of which none
// may begin before the last has ended, unless it lies within that; and marks.
//
//	perfetto.Write(w, []perfetto.Event{
//		perfetto.Process(0, "rank 0"),
//		perfetto.Track(0, 1, "collectives"),
//		perfetto.Slice(0, 1, "all_reduce #0", begin, took),
//	})
package perfetto

import (
	"encoding/json"
	"io"
	"time"
)

// An Event is one thing on a timeline, as the format has it. The functions below make
// them.
type Event struct {
	Name    string         `json:"name"`
	Phase   string         `json:"ph"`
	Time    float64        `json:"ts"`  // µs
	Took    float64        `json:"dur"` // µs, of a slice
	Process int            `json:"pid"`
	Track   int            `json:"tid"`
	Scope   string         `json:"s,omitempty"` // of a mark
	Args    map[string]any `json:"args,omitempty"`
}

// Process names a process.
func Process(process int, name string) Event {
	return Event{Name: "process_name", Phase: "M", Process: process, Args: map[string]any{"name": name}}
}

// Track names a track of a process. Tracks are shown in the order of their numbers.
func Track(process, track int, name string) Event {
	return Event{Name: "thread_name", Phase: "M", Process: process, Track: track, Args: map[string]any{"name": name}}
}

// Slice is something that took its time, from a time since the timeline's beginning.
func Slice(process, track int, name string, from, took time.Duration) Event {
	return Event{Name: name, Phase: "X", Time: micros(from), Took: micros(took), Process: process, Track: track}
}

// Mark is something that happened at a moment.
func Mark(process, track int, name string, at time.Duration) Event {
	return Event{Name: name, Phase: "i", Time: micros(at), Process: process, Track: track, Scope: "t"}
}

// With is the event with something more to be read about it.
func (e Event) With(name string, value any) Event {
	args := make(map[string]any, len(e.Args)+1)
	for k, v := range e.Args {
		args[k] = v
	}
	args[name] = value
	e.Args = args
	return e
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// Write writes a timeline as one JSON object.
func Write(w io.Writer, events []Event) error {
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}
