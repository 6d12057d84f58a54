package planet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxText bounds a map's text in bytes.
	maxText = 1 << 20
	maxRTT  = time.Hour
	maxRate = 1e12
)

// Parse reads a map:
//
//	rate 125e6               # bytes per second of every rank's port, each way
//	region ireland 3ms       # and the round trip inside it
//	region tokyo 3ms
//	rtt ireland tokyo 202ms
//
// A line is a statement; # begins a comment. Every two regions have a line.
func Parse(text string) (*Map, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("planet: a map of %d bytes: want at most %d", len(text), maxText)
	}
	m := &Map{Rate: earthRate}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			if err := m.line(words); err != nil {
				return nil, fmt.Errorf("planet: line %d: %w", i+1, err)
			}
		}
	}
	for i, row := range m.RTT {
		if j := slices.Index(row, unknown); j >= 0 {
			return nil, fmt.Errorf("planet: no line says how far %s is from %s", m.Names[i], m.Names[j])
		}
	}
	return m, m.Check()
}

// unknown stands for a round trip that has not been read yet.
const unknown time.Duration = -1

func (m *Map) line(words []string) error {
	switch verb, args := words[0], words[1:]; {
	case verb == "rate" && len(args) == 1:
		rate, err := strconv.ParseFloat(args[0], 64)
		if err != nil || !(rate > 0 && rate <= maxRate) {
			return fmt.Errorf("a rate of %q: want bytes per second up to %g", args[0], float64(maxRate))
		}
		m.Rate = rate
	case verb == "region" && len(args) == 2:
		rtt, err := parseRTT(args[1])
		if err != nil {
			return err
		}
		return m.add(args[0], rtt)
	case verb == "rtt" && len(args) == 3:
		rtt, err := parseRTT(args[2])
		if err != nil {
			return err
		}
		i, j := slices.Index(m.Names, args[0]), slices.Index(m.Names, args[1])
		if i < 0 || j < 0 || i == j || m.RTT[i][j] != unknown {
			return fmt.Errorf("%s and %s are no two regions above, or come twice", args[0], args[1])
		}
		m.RTT[i][j], m.RTT[j][i] = rtt, rtt
	default:
		return errors.New("want rate BYTES, region NAME TIME, or rtt NAME NAME TIME")
	}
	return nil
}

// add makes a region whose way to those before it is unknown yet.
func (m *Map) add(name string, inside time.Duration) error {
	if len(m.Names) == MaxRegions || slices.Contains(m.Names, name) {
		return fmt.Errorf("region %s comes twice, or is one of more than %d", name, MaxRegions)
	}
	m.Names = append(m.Names, name)
	for i := range m.RTT {
		m.RTT[i] = append(m.RTT[i], unknown)
	}
	m.RTT = append(m.RTT, slices.Repeat([]time.Duration{unknown}, len(m.Names)))
	m.RTT[len(m.RTT)-1][len(m.RTT)-1] = inside
	return nil
}

func parseRTT(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 || d > maxRTT {
		return 0, fmt.Errorf("%q: want a time up to %v, such as 80ms", word, maxRTT)
	}
	return d, nil
}

// String is the map's text: Parse reads it as an equal one.
func (m *Map) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rate %g\n", m.Rate)
	for i, name := range m.Names {
		fmt.Fprintf(&b, "region %s %v\n", name, m.RTT[i][i])
		for j := range i {
			fmt.Fprintf(&b, "rtt %s %s %v\n", m.Names[j], name, m.RTT[i][j])
		}
	}
	return b.String()
}
