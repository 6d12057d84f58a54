package main

import (
	"bytes"
	"encoding/json"
)

// maxBaseline bounds the file of an earlier run, in bytes.
const maxBaseline = 16 << 20

// A benchKey is what two measurements must have alike to be compared; the transport,
// the algorithm and the lanes are what may differ.
type benchKey struct {
	op    string
	dtype string
	bytes int64
	world int
}

func (m measurement) key() benchKey { return benchKey{m.Op, m.DType, m.Bytes, m.World} }

// A baseline is an earlier run's medians in µs; nil if there is none.
type baseline map[benchKey]float64

// readBaseline reads the lines that an earlier --json has printed. Other lines are
// passed over, so that a log will do; of a measurement that is there more than once
// the last counts.
func readBaseline(path string) (baseline, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readFile(path, maxBaseline+1)
	switch {
	case err != nil:
		return nil, usagef("--against: %w", err)
	case len(text) > maxBaseline:
		return nil, usagef("--against %s: larger than %v", path, size(maxBaseline))
	}
	b := parseBaseline(text)
	if len(b) == 0 {
		return nil, usagef("--against %s: has no line that peer bench --json has printed", path)
	}
	return b, nil
}

func parseBaseline(text []byte) baseline {
	b := make(baseline)
	for line := range bytes.Lines(text) {
		var m measurement
		if json.Unmarshal(line, &m) == nil && m.Op != "" && m.Median > 0 {
			b[m.key()] = m.Median
		}
	}
	return b
}
