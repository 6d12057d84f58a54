package fit

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	barCells  = 20
	frameTime = 100 * time.Millisecond // the least between two states of the bar
)

// A ProgressBar draws, on rank 0, how far the epoch is, with the losses and the metrics of
// the last validation, and why the run has ended if it has early. Where Out is no terminal it is silent.
type ProgressBar struct {
	RankZero
	Out   io.Writer // nil: standard error
	Force bool      // draw on what is no terminal, too

	out   io.Writer // nil: silent
	drawn time.Duration
	width int
}

// FitStart looks at what Out is.
func (b *ProgressBar) FitStart(context.Context, *Run) error {
	b.out = b.Out
	if b.out == nil {
		b.out = os.Stderr
	}
	if !b.Force && !terminal(b.out) {
		b.out = nil
	}
	b.drawn = -frameTime
	return nil
}

// terminal is whether w is a character device, other than the one that forgets all.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f.Name() == os.DevNull {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// StepEnd draws, unless it has just drawn.
func (b *ProgressBar) StepEnd(_ context.Context, r *Run) error {
	if b.out == nil || r.Elapsed()-b.drawn < frameTime {
		return nil
	}
	b.drawn = r.Elapsed()
	return b.draw(r, "")
}

// EpochEnd leaves the last state of an epoch standing.
func (b *ProgressBar) EpochEnd(_ context.Context, r *Run) error {
	if b.out == nil {
		return nil
	}
	err := b.draw(r, "\n")
	b.width = 0
	return err
}

// FitEnd says why the run has ended early, if it has.
func (b *ProgressBar) FitEnd(_ context.Context, r *Run) error {
	if b.out == nil || r.Stopped() == "" {
		return nil
	}
	_, err := io.WriteString(b.out, "stopped: "+r.Stopped()+"\n")
	return err
}

// Exception leaves the bar as it is, and lets what follows begin on a line of its own.
func (b *ProgressBar) Exception(context.Context, *Run, error) error {
	if b.out == nil || b.width == 0 {
		return nil
	}
	_, err := io.WriteString(b.out, "\n")
	return err
}

func (b *ProgressBar) draw(r *Run, end string) error {
	line := bar(r)
	pad := strings.Repeat(" ", max(0, b.width-len(line))) // over what was longer
	b.width = len(line)
	_, err := io.WriteString(b.out, "\r"+line+pad+end)
	return err
}

// bar is one state: epoch, cells, samples and metrics.
func bar(r *Run) string {
	at := r.Progress()
	total := max(int64(r.PerEpoch()), at.Consumed, 1)
	full := int(at.Consumed * barCells / total)
	line := fmt.Sprintf("epoch %d [%s%s] %d/%d", at.Epoch+1, strings.Repeat("=", full), strings.Repeat(" ", barCells-full), at.Consumed, total)
	if epochs, _ := r.Limits(); epochs > 0 {
		line = strings.Replace(line, " [", fmt.Sprintf("/%d [", epochs), 1)
	}
	metrics := r.Metrics()
	names := []string{TrainLoss}
	for name := range metrics {
		if strings.HasPrefix(name, validPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		line += fmt.Sprintf(" %s %.4g", name, metrics[name])
	}
	return line
}
