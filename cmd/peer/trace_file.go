package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// A traceEvent is one of the Trace Event Format, which Perfetto and Chrome's
// about:tracing read: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"` // µs
	Took  float64        `json:"dur"`
	Rank  int            `json:"pid"`
	Track int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// write writes ranks' parts, from the first thing that any of them did.
func (t *timeline) write(path string, parts []part) error {
	events := traceEvents(parts)
	err := replaceFile(path, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
	})
	if err != nil {
		return usagef("--trace %s: %w", path, err)
	}
	return nil
}

// traceEvents lays spans out: a rank is a process of the format, and a track a thread.
func traceEvents(parts []part) []traceEvent {
	var events []traceEvent
	name := func(what string, rank, track int, name string) {
		events = append(events, traceEvent{Name: what, Phase: "M", Rank: rank, Track: track, Args: map[string]any{"name": name}})
	}
	zero := beginning(parts)
	micro := func(ns int64) float64 { return float64(ns) / 1e3 }
	for _, p := range parts {
		name("process_name", p.Rank, 0, fmt.Sprintf("rank %d", p.Rank))
		tracks := make(map[string][]span)
		for _, s := range p.Spans {
			tracks[s.Track] = append(tracks[s.Track], s)
		}
		id := 0
		for _, track := range slices.Sorted(maps.Keys(tracks)) {
			for i, row := range rows(tracks[track]) {
				id++
				title := track
				if i > 0 {
					title = fmt.Sprintf("%s (%d)", track, i+1)
				}
				name("thread_name", p.Rank, id, title)
				for _, s := range row {
					e := traceEvent{Name: s.Name, Phase: "X", Time: micro(s.From - zero), Took: micro(s.To - s.From), Rank: p.Rank, Track: id}
					if s.Note != "" {
						e.Args = map[string]any{"note": s.Note}
					}
					events = append(events, e)
				}
			}
		}
	}
	return events
}

// beginning is when the first span began.
func beginning(parts []part) (first int64) {
	for _, p := range parts {
		for _, s := range p.Spans {
			if first == 0 || s.From < first {
				first = s.From
			}
		}
	}
	return first
}

// rows are a track's spans on as few rows as they fit on side by side, since on one
// thread of the format nothing may begin before the last thing ended.
func rows(spans []span) (rows [][]span) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range spans {
		i := slices.IndexFunc(rows, func(row []span) bool { return row[len(row)-1].To <= s.From })
		if i < 0 {
			i = len(rows)
			rows = append(rows, nil)
		}
		rows[i] = append(rows[i], s)
	}
	return rows
}
