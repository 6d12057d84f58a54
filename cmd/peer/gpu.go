package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"peermesh/gpu"
)

// A gpuCmd is about the GPUs of this machine.
type gpuCmd struct {
	Report gpuReportCmd `cmd:"" default:"withargs" help:"Say what was found, and what to do about what is missing (the default)."`
	Check  gpuCheckCmd  `cmd:"" help:"Try everything against the hardware, and say what it does a second."`
}

// A noGPUError says that there is nothing to work with, which is no failure of ours.
type noGPUError struct{ err error }

func (e *noGPUError) Error() string { return e.err.Error() }
func (e *noGPUError) Unwrap() error { return e.err }

// A gpuReportCmd reports.
type gpuReportCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run prints what there is. It is an error that there is no GPU.
func (g *gpuReportCmd) Run(p *process) error {
	s := gpu.Look()
	if err := printSurvey(p.stdout, s, g.JSON); err != nil {
		return err
	}
	if !s.Usable() {
		return noGPU(s)
	}
	return nil
}

func printSurvey(w io.Writer, s gpu.Survey, raw bool) error {
	if raw {
		return writeJSONLine(w, s)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// noGPU says in a line why there is none.
func noGPU(s gpu.Survey) error {
	why, _, _ := strings.Cut(s.Lacks[0].Why, ":\n")
	return &noGPUError{fmt.Errorf("no GPU can be used here: %s", why)}
}

// checkWithin bounds a whole check, a step that hangs at its end included.
const checkWithin = 270 * time.Second

// A gpuCheckCmd tries a device.
type gpuCheckCmd struct {
	Device int           `placeholder:"N" help:"The device, by its number in peer gpu (0)."`
	Bytes  size          `default:"64MiB" placeholder:"SIZE" help:"Size of the largest copy, and of what two processes all-reduce."`
	Budget time.Duration `default:"100ms" placeholder:"TIME" help:"How long a rate is measured, of which there are 26."`
	JSON   bool          `name:"json" help:"Print one JSON object for each step."`
}

// Bounds of --bytes: whole elements in the smallest copy, and what any card has.
const (
	leastChecked = 4 << 10
	mostChecked  = 1 << 30
	mostBudget   = 2 * time.Second
)

// Validate finds what cannot be checked. Kong calls it.
func (g *gpuCheckCmd) Validate() error {
	switch {
	case g.Device < 0:
		return fmt.Errorf("--device is %d, want 0 or more", g.Device)
	case g.Budget <= 0 || g.Budget > mostBudget:
		return fmt.Errorf("--budget is %v, want up to %v", g.Budget, mostBudget)
	case g.Bytes < leastChecked || g.Bytes > mostChecked || g.Bytes%leastChecked != 0:
		return fmt.Errorf("--bytes is %v, want %v to %v, by %v", g.Bytes, size(leastChecked), size(mostChecked), size(leastChecked))
	}
	return nil
}

// Run tries every step, and prints a table of what became of each.
func (g *gpuCheckCmd) Run(p *process) error {
	if _, err := gpu.Devices(); errors.Is(err, gpu.ErrUnavailable) {
		s := gpu.Look()
		return errors.Join(printSurvey(p.stdout, s, g.JSON), noGPU(s))
	}
	ctx, cancel := context.WithTimeoutCause(p.ctx, checkWithin, fmt.Errorf("the check took more than %v", checkWithin))
	defer cancel()
	t := &gpuTable{w: p.stdout, raw: g.JSON}
	gpu.Check(ctx, gpu.Trial{Ordinal: g.Device, Most: int(g.Bytes), Budget: g.Budget}, t.row)
	t.row(g.train(ctx, t.opened))
	t.row(g.pair(ctx, p, t.opened))
	return errors.Join(t.err, cause(p.ctx, t.verdict()))
}

// A gpuTable prints verdicts as they come.
type gpuTable struct {
	w      io.Writer
	raw    bool
	rows   int
	opened bool     // the first step has passed
	failed []string // steps
	err    error    // of writing
}

// A gpuRow is a verdict in JSON.
type gpuRow struct {
	Step    string  `json:"step"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Note    string  `json:"note,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func (t *gpuTable) row(v gpu.Verdict) {
	verdict, words := "ok", v.Note
	switch {
	case errors.Is(v.Err, gpu.ErrNotTried):
		verdict, words = "not tried", ""
	case v.Err != nil:
		verdict, words = "FAILED", strings.TrimPrefix(v.Err.Error(), "gpu: ")
	}
	if v.Err != nil {
		t.failed = append(t.failed, v.Step)
	} else if t.rows == 0 {
		t.opened = true
	}
	var err error
	if t.raw {
		row := gpuRow{v.Step, v.Err == nil, v.Took.Seconds(), v.Note, ""}
		if v.Err != nil {
			row.Error = v.Err.Error()
		}
		err = writeJSONLine(t.w, row)
	} else {
		if t.rows == 0 {
			_, t.err = fmt.Fprintf(t.w, "%-20s %-9s %9s\n", "step", "verdict", "time")
		}
		words = strings.ReplaceAll(words, "\n", "\n"+strings.Repeat(" ", 42))
		line := fmt.Sprintf("%-20s %-9s %9s  %s", v.Step, verdict, duration(float64(v.Took.Microseconds())), words)
		_, err = fmt.Fprintln(t.w, strings.TrimRight(line, " "))
	}
	t.rows++
	t.err = errors.Join(t.err, err)
}

// verdict is the whole check's.
func (t *gpuTable) verdict() error {
	if len(t.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d steps failed, the first of them: %s", len(t.failed), t.rows, t.failed[0])
}

// pairStep is what two processes do with one GPU.
const pairStep = "two processes"

// pair has two processes share the device, and all-reduce on it.
func (g *gpuCheckCmd) pair(ctx context.Context, p *process, opened bool) gpu.Verdict {
	v, begin := gpu.Verdict{Step: pairStep}, time.Now()
	if !opened {
		v.Err = fmt.Errorf("%w: the device does not open", gpu.ErrNotTried)
		return v
	}
	var out strings.Builder
	child := &process{ctx: ctx, stdout: &out, stderr: p.stderr}
	v.Err = launchRanks(child, "gpu-pair", 2, true, func(_ int, key string) *brief {
		return &brief{GPUPair: &gpuPairCmd{Device: g.Device, Bytes: int64(g.Bytes), Joining: Joining{World: 2, Identity: key, Listen: loopback("all")}}}
	})
	v.Took = time.Since(begin)
	var r pairResult
	if v.Err == nil {
		v.Err = json.Unmarshal([]byte(out.String()), &r)
	}
	if v.Err == nil {
		v.Note = r.String()
	}
	return v
}
