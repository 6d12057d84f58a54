package main

import (
	"errors"
	"os"
	"path/filepath"

	logs "peermesh/trainer/logger"
)

// A logReporter keeps the numbers of a run in the folder of --log-dir, and passes all on
// to another reporter. Only rank 0 writes: which rank this is it hears with each world,
// and it opens its files at the first number that there is to keep.
type logReporter struct {
	reporter
	dir   string
	rank  int
	table *logs.CSV
	board *logs.TensorBoard
}

func (l *logReporter) world(w worldFacts) error {
	l.rank = w.rank
	return l.reporter.world(w)
}

func (l *logReporter) started(s startFacts) error {
	l.rank = s.rank
	return l.reporter.started(s)
}

func (l *logReporter) step(s stepFacts) error {
	if err := l.reporter.step(s); err != nil {
		return err
	}
	return l.log(s.taken, map[string]float64{"train/loss": s.loss})
}

func (l *logReporter) epoch(e epochFacts) error {
	if err := l.reporter.epoch(e); err != nil {
		return err
	}
	return l.log(e.steps, map[string]float64{"epoch": float64(e.epoch), "train/epoch_loss": e.loss,
		"samples_per_second": rate(e.samples, e.elapsed)})
}

func (l *logReporter) done(e epochFacts, accuracy float64) error {
	if err := l.reporter.done(e, accuracy); err != nil {
		return err
	}
	return l.log(e.steps, map[string]float64{"test/accuracy": accuracy})
}

// log writes the numbers of a step, on rank 0.
func (l *logReporter) log(step int, metrics map[string]float64) error {
	if l.rank != 0 {
		return nil
	}
	if l.board == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	return errors.Join(l.table.Log(int64(step), metrics), l.board.Log(int64(step), metrics))
}

func (l *logReporter) open() (err error) {
	if err := os.MkdirAll(l.dir, 0o777); err != nil {
		return err
	}
	if l.table == nil {
		if l.table, err = logs.OpenCSV(filepath.Join(l.dir, "metrics.csv")); err != nil {
			return err
		}
	}
	l.board, err = logs.OpenTensorBoard(l.dir)
	return err
}

// closeAfter closes what is open, and adds what goes wrong to how the run went. A nil
// logReporter has nothing open.
func (l *logReporter) closeAfter(run error) error {
	var table, board error
	if l != nil && l.table != nil {
		table = l.table.Close()
	}
	if l != nil && l.board != nil {
		board = l.board.Close()
	}
	if table == nil && board == nil {
		return run
	}
	return errors.Join(run, table, board)
}
