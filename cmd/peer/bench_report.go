package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// facts are what stands above a table: all that a number means nothing without.
type facts struct {
	world     int
	where     string
	transport string
	algo      string
	lanes     int
	machine   machine
}

// discard is the reporter of the ranks that have nothing to say.
func discard(measurement) error { return nil }

// newBenchReporter writes a line for each measurement: JSON, or a table.
func newBenchReporter(w io.Writer, raw bool, before baseline, f facts) func(m measurement) error {
	complete := func(m measurement) measurement {
		m.Transport, m.Algorithm, m.Lanes = f.transport, f.algo, f.lanes
		return m
	}
	if raw {
		return func(m measurement) error { return writeJSONLine(w, complete(m)) }
	}
	first := true
	return func(m measurement) error {
		text := row(m, before)
		if first {
			text = f.header(m, before) + text
			first = false
		}
		_, err := io.WriteString(w, text)
		return err
	}
}

// writeJSONLine writes one object in one piece.
func writeJSONLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// header says what the table is of, and names its columns.
func (f facts) header(m measurement, before baseline) string {
	how := "transport " + f.transport
	if f.algo != "" {
		how += ", algorithm " + f.algo
	}
	if f.lanes > 0 {
		how += fmt.Sprintf(", %d lanes", f.lanes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks, %s; %s\n%v\n", f.world, f.where, how, f.machine)
	fmt.Fprintf(&b, "times are of the slowest rank, after a barrier; the clock costs %s; bus bandwidth is nccl-tests'\n\n", duration(m.Overhead))
	fmt.Fprintf(&b, "%-16s %-9s %9s %7s %10s %10s %10s %11s %11s  %-6s", "operation", "type", "size", "runs", "median", "p10", "p99", "algorithm", "bus", "result")
	if before != nil {
		fmt.Fprintf(&b, " %10s %8s", "before", "faster")
	}
	b.WriteByte('\n')
	return b.String()
}

// row is one line of the table.
func row(m measurement, before baseline) string {
	size, alg, bus := "", "", ""
	if m.Bytes > 0 {
		size, alg, bus = bytesText(m.Bytes), speed(m.Alg), speed(m.Bus)
	}
	result := "exact"
	if !m.OK {
		result = "WRONG"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-9s %9s %7d %10s %10s %10s %11s %11s  %-6s",
		m.Op, m.DType, size, m.Iters, duration(m.Median), duration(m.P10), duration(m.P99), alg, bus, result)
	if before != nil {
		was, ratio := "-", "-"
		if old, known := before[m.key()]; known && m.Median > 0 {
			was, ratio = duration(old), fmt.Sprintf("%.2f×", old/m.Median)
		}
		fmt.Fprintf(&b, " %10s %8s", was, ratio)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// bytesText is a size as a column has it.
func bytesText(n int64) string {
	text := size(n).String()
	at := strings.IndexAny(text, "BGKMk")
	return text[:at] + " " + text[at:]
}

// duration has three digits or four, of a time in µs.
func duration(us float64) string {
	switch {
	case us < 1:
		return fmt.Sprintf("%.0f ns", us*1e3)
	case us < 1e3:
		return fmt.Sprintf("%.1f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.2f ms", us/1e3)
	}
	return fmt.Sprintf("%.2f s ", us/1e6) // as wide as the others' units
}

// speed is a rate in GB/s, in a unit that shows it.
func speed(gb float64) string {
	switch {
	case gb >= 1:
		return fmt.Sprintf("%.2f GB/s", gb)
	case gb >= 1e-3:
		return fmt.Sprintf("%.1f MB/s", gb*1e3)
	}
	return fmt.Sprintf("%.1f kB/s", gb*1e6)
}
