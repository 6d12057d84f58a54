package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"peermesh/mesh"
)

const (
	// quietTime is the least time between two plain progress lines.
	quietTime = 2 * time.Second
	// frameTime is the least time between two states of the bar.
	frameTime = 100 * time.Millisecond
	// barMargin is what a line holds beside the bar itself: epoch, loss, rate,
	// percentage and times, and a launcher's prefix.
	barMargin = 92
	// hashDigits is how much of a hash a person is shown.
	hashDigits = 16
)

// A textReporter writes lines for a person. Rank 0 also shows progress: a bar
// where a terminal is at the other end, else a line now and then.
type textReporter struct {
	w          io.Writer
	rank, size int
	worlds     int // so far
	columns    int // of the terminal; zero: none
	bar        *progressbar.ProgressBar
	shown      time.Time
	epochs     int
	quiet      bool // says how it ends, and nothing on the way there
}

// printf writes one line; the carriage return before it takes the bar away.
func (r *textReporter) printf(format string, args ...any) error {
	if r.bar != nil {
		r.bar = nil
		format = "\r" + format
	}
	_, err := fmt.Fprintf(r.w, format+"\n", args...)
	return err
}

// listening gives whole commands, ready to paste.
func (r *textReporter) listening(ways []entrance, _ []string) error {
	text := "waiting for the others; each joins"
	for i, way := range ways {
		if i > 0 {
			text += "\nor"
		}
		if way.how != "" {
			text += ", " + way.how + ","
		}
		text += " with\n    " + way.command
	}
	return r.printf("%s", text)
}

// world is silent about the first one, of which started tells more.
func (r *textReporter) world(w worldFacts) error {
	r.rank, r.size = w.rank, w.size
	r.worlds++
	if r.quiet {
		return nil
	}
	if len(w.relayed) > 0 {
		if err := r.printf("world %d: rank %d reaches rank %s through a relay", w.epoch, w.rank, ranksText(w.relayed)); err != nil {
			return err
		}
	}
	if r.worlds == 1 {
		return nil
	}
	return r.printf("world %d: rank %d of %d goes on", w.epoch, w.rank, w.size)
}

func (r *textReporter) ended(w worldFacts) error {
	if r.quiet {
		return nil
	}
	return r.printf("world %d has ended: %s", w.epoch, reason(w.cause))
}

// reason is why a world has ended, without what the line says already.
func reason(err error) string {
	if ended, ok := errors.AsType[*mesh.EndedError](err); ok && !errors.Is(err, mesh.ErrGrow) {
		return fmt.Sprintf("rank %d (%s): %v", ended.Rank, ended.Peer, ended.Err)
	} else if ok {
		return ended.Err.Error()
	}
	return err.Error()
}

// ranksText is a list of ranks.
func ranksText(ranks []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ", "), "[]")
}

func (r *textReporter) started(s startFacts) error {
	r.epochs = s.epochs
	if r.quiet {
		return nil
	}
	if err := r.printf("rank %d of %d is %s", s.rank, s.world, s.peer); err != nil || r.rank != 0 {
		return err
	}
	return r.printf("%s: %d parameters, %d steps, batch %d on each of %d ranks, %d threads a rank",
		s.net, s.parameters, s.steps, s.batch, s.world, s.threads)
}

// step shows progress on rank 0 only: the others are in step with it.
func (r *textReporter) step(s stepFacts) error {
	if r.rank != 0 || r.quiet {
		return nil
	}
	if r.columns > 0 {
		return r.draw(s)
	}
	if now := time.Now(); now.Sub(r.shown) >= quietTime {
		r.shown = now
		return r.printf("epoch %d/%d  step %d/%d  %s", s.epoch, r.epochs, s.step, s.steps, progress(s))
	}
	return nil
}

// progress is how a step went: the loss, and what goes through the model and the links.
func progress(s stepFacts) string {
	text := fmt.Sprintf("loss %.4f  %.0f samples/s", s.loss, rate(s.samples, s.elapsed))
	if s.bytes > 0 {
		text += "  " + traffic(s.bytes)
	}
	return text
}

// traffic is a rate in bytes as a person reads it.
func traffic(bytes float64) string {
	for _, unit := range []string{"B/s", "kB/s", "MB/s"} {
		if bytes < 1000 {
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g GB/s", bytes)
}

// draw shows the bar. The library only composes it: whoever owns the terminal,
// this process's console or the launcher's, draws what follows the "\r".
func (r *textReporter) draw(s stepFacts) error {
	if r.bar == nil {
		r.bar = progressbar.NewOptions(s.steps,
			progressbar.OptionSetWriter(io.Discard),
			progressbar.OptionSetWidth(min(40, max(5, r.columns-barMargin))),
			progressbar.OptionSetPredictTime(true),
		)
	} else if time.Since(r.shown) < frameTime {
		return nil
	}
	r.shown = time.Now()
	r.bar.Describe(fmt.Sprintf("epoch %d/%d  step %d/%d  %s", s.epoch, r.epochs, s.step, s.steps, progress(s)))
	if err := r.bar.Set(s.step); err != nil {
		return err
	}
	_, err := io.WriteString(r.w, "\r"+strings.TrimSpace(r.bar.String()))
	return err
}

// epoch prints the tutorial's line on every rank, and on rank 0 the world's.
func (r *textReporter) epoch(e epochFacts) error {
	if r.quiet {
		return nil
	}
	if err := r.printf("Rank %d , epoch %d : %.6f", r.rank, e.epoch, e.losses[r.rank]); err != nil || r.rank != 0 {
		return err
	}
	return r.printf("epoch %d/%d: loss %.6f, %.1f s, %.0f samples/s; parameters %.*s on each of %d ranks",
		e.epoch, r.epochs, e.loss, e.elapsed.Seconds(), rate(e.samples, e.elapsed), hashDigits, e.hash, r.size)
}

func (r *textReporter) done(e epochFacts, accuracy float64) error {
	if r.rank != 0 {
		return r.printf("loss %.6f", e.losses[r.rank])
	}
	return r.printf("loss %.6f, test accuracy %.2f %%, wall time %.1f s", e.losses[r.rank], 100*accuracy, e.elapsed.Seconds())
}
