package logger

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"peermesh/trainer/internal/finite"
)

// Console writes a line a step for a person, with the metrics in the order of their
// names:
//
//	step 50 train/loss 0.3125 val/loss 0.25
type Console struct {
	Out io.Writer
}

// Log writes a line.
func (c *Console) Log(step int64, metrics map[string]float64) error {
	var line strings.Builder
	fmt.Fprintf(&line, "step %d", step)
	for _, name := range sorted(metrics) {
		fmt.Fprintf(&line, " %s %.6g", name, metrics[name])
	}
	line.WriteByte('\n')
	if _, err := io.WriteString(c.Out, line.String()); err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}

// JSONLines writes an object a line for a program:
//
//	{"step":50,"time":1700000000.25,"train/loss":0.3125}
//
// The time is in seconds since 1970. What is not finite is a string, "NaN", "+Inf" or
// "-Inf", as JSON has no number for it. Metrics are not called step or time.
type JSONLines struct {
	Out io.Writer
}

// Log writes a line.
func (j *JSONLines) Log(step int64, metrics map[string]float64) error {
	line := map[string]any{}
	for name, v := range metrics {
		line[name] = v
		if !finite.Number(v) {
			line[name] = format(v)
		}
	}
	line["step"], line["time"] = step, seconds(time.Now())
	p, err := json.Marshal(line) // its keys are sorted
	if err == nil {
		_, err = j.Out.Write(append(p, '\n'))
	}
	if err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}
