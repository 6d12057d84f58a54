package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"peermesh/ops/flight/perfetto"
)

// write writes ranks' parts, from the first thing that any of them did.
func (t *timeline) write(path string, parts []part) error {
	events := traceEvents(parts)
	err := replaceFile(path, func(w io.Writer) error {
		return perfetto.Write(w, events)
	})
	if err != nil {
		return usagef("--trace %s: %w", path, err)
	}
	return nil
}

// traceEvents lays spans out: a rank is a process of the format.
func traceEvents(parts []part) (events []perfetto.Event) {
	zero := beginning(parts)
	for _, p := range parts {
		events = append(events, perfetto.Process(p.Rank, fmt.Sprintf("rank %d", p.Rank)))
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
				events = append(events, perfetto.Track(p.Rank, id, title))
				for _, s := range row {
					e := perfetto.Slice(p.Rank, id, s.Name, time.Duration(s.From-zero), time.Duration(s.To-s.From))
					if s.Note != "" {
						e = e.With("note", s.Note)
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
