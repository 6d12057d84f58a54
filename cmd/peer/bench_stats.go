package main

import (
	"math"
	"slices"
	"strconv"
)

// A measurement is one line of peer bench --json: an operation at one size. The
// names are a contract: programs read them.
type measurement struct {
	Op        string  `json:"op"`
	World     int     `json:"world"`
	Bytes     int64   `json:"bytes"`       // as asked for
	Total     int64   `json:"total_bytes"` // in whole elements and equal parts
	DType     string  `json:"dtype"`
	Transport string  `json:"transport"`
	Algorithm string  `json:"algorithm,omitempty"`
	Lanes     int     `json:"lanes,omitempty"`
	Iters     int     `json:"iters"`
	Median    float64 `json:"median_us"`
	Min       float64 `json:"min_us"`
	P10       float64 `json:"p10_us"`
	P99       float64 `json:"p99_us"`
	Alg       float64 `json:"algbw_GBs"` // GB are 1e9 bytes
	Bus       float64 `json:"busbw_GBs"`
	Overhead  float64 `json:"overhead_us"` // of the clock; times are with it
	OK        bool    `json:"ok"`
}

// A summaryOf is what is said of many times.
type summaryOf struct{ median, least, p10, p99 float64 }

// summarize sorts the times, of which there is at least one.
func summarize(times []float64) summaryOf {
	slices.Sort(times)
	return summaryOf{quantile(times, 0.5), times[0], quantile(times, 0.1), quantile(times, 0.99)}
}

// quantile is the nearest of the sorted values; no value is made up between two.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted)-1)+0.5))]
}

// finish fills in what follows from the times, in µs, and from what a link carries
// of each byte of the buffer.
func (m *measurement) finish(times []float64, bus float64) {
	s := summarize(times)
	m.Iters = len(times)
	m.Median, m.Min, m.P10, m.P99 = rounded2(s.median), rounded2(s.least), rounded2(s.p10), rounded2(s.p99)
	if s.median > 0 {
		m.Alg = significant(float64(m.Total) / s.median / 1e3)
		m.Bus = significant(float64(m.Total) / s.median / 1e3 * bus)
	}
}

func rounded2(x float64) float64 { return math.Round(x*100) / 100 }

// significant is x without digits that no clock can vouch for.
func significant(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 5, 64), 64)
	if err != nil {
		return x
	}
	return y
}
