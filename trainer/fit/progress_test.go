package fit

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/trainer"
)

// The bar is drawn on rank 0, not more often than a person can see, and not at all on
// what is no terminal.
func TestProgressBar(t *testing.T) {
	out := make([]bytes.Buffer, 2)
	var quiet bytes.Buffer
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		tr.Model.(*wave).before = func(int) error { time.Sleep(40 * time.Millisecond); return nil }
		scripted(tr, 0.5, 0.25)
		tr.Callbacks = []Callback{&ProgressBar{Out: &out[rank], Force: true}, &ProgressBar{Out: &quiet}}
	})
	none(t, errs)
	if out[1].Len() > 0 || quiet.Len() > 0 {
		t.Errorf("rank 1 draws %q, and on no terminal there is %q", out[1].String(), quiet.String())
	}
	lines := strings.Split(out[0].String(), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("%q", lines)
	}
	frames := strings.Split(lines[1], "\r")
	if len(frames) != 4 { // of seven steps two, and the end
		t.Errorf("%q", frames)
	}
	last := frames[len(frames)-1]
	if !strings.HasPrefix(last, "epoch 2/2 [====================] 50/50 train/loss ") || !strings.HasSuffix(strings.TrimRight(last, " "), " val/loss 0.25") {
		t.Errorf("%q", last)
	}
	if !strings.HasPrefix(lines[0], "\repoch 1/2 [===                 ] 8/50 ") {
		t.Errorf("%q", lines[0])
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if terminal(null) {
		t.Error("what forgets all is taken for a terminal")
	}
	if err := null.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is left of an epoch with a limit is what the bar counts to, from its first step on, with
// the data dealt in either way, a last batch that is short, and batches fewer than the limit.
func TestProgressBarLimited(t *testing.T) {
	for _, c := range []struct {
		deal           trainer.ElasticConfig
		limit, overfit int
		want           []int // in the steps of an epoch
	}{
		{trainer.ElasticConfig{Global: 8}, 3, 0, []int{24, 24, 24}},
		{trainer.ElasticConfig{Batch: 8}, 2, 0, []int{32, 32}},
		{trainer.ElasticConfig{Batch: 8}, 3, 2, []int{32, 32}},
		{trainer.ElasticConfig{Batch: 8}, 1, 0, []int{16}},
		{trainer.ElasticConfig{Batch: 8}, 4, 0, []int{50, 50, 50, 50}},
		{trainer.ElasticConfig{Batch: 8}, math.MaxInt, 0, []int{50, 50, 50, 50}},
		{trainer.ElasticConfig{Batch: 8}, 0, 0, []int{50, 50, 50, 50}},
		{trainer.ElasticConfig{Batch: 8, DropLast: true}, 0, 0, []int{48, 48, 48}},
		{trainer.ElasticConfig{Batch: 8, DropLast: true}, 4, 0, []int{48, 48, 48}},
		{trainer.ElasticConfig{Batch: 8, DropLast: true}, 2, 0, []int{32, 32}},
		{trainer.ElasticConfig{Global: 60, DropLast: true}, 0, 0, []int{50}},
	} {
		var out bytes.Buffer
		lens := make([]lengths, 2)
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			tr.Train, tr.LimitTrain, tr.Overfit, tr.Epochs = points(50, c.deal), c.limit, c.overfit, 2
			tr.Callbacks = []Callback{&ProgressBar{Out: &out, Force: true}, &lens[rank]}
		})
		none(t, errs)
		for rank := range lens {
			if want := slices.Concat(c.want, c.want); !slices.Equal(lens[rank].of, want) {
				t.Errorf("%+v: rank %d: %v", c, rank, lens[rank].of)
			}
		}
		if end := fmt.Sprintf("2/2 [====================] %[1]d/%[1]d ", c.want[0]); !strings.Contains(out.String(), end) {
			t.Errorf("%+v: %q lacks %q", c, out.String(), end)
		}
	}
}

// lengths writes down what is said to be an epoch's.
type lengths struct {
	Base
	of []int
}

func (l *lengths) StepStart(_ context.Context, r *Run) error {
	l.of = append(l.of, r.PerEpoch())
	return nil
}

// The profile has every phase, and they add up to the run.
func TestProfiler(t *testing.T) {
	var out, other bytes.Buffer
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		tr.Model.(*wave).before = func(int) error { time.Sleep(time.Duration(1+rank) * time.Second); return nil }
		d := tr.Train.(Samples[[]float64])
		load := d.Load
		d.Load = func(ctx context.Context, indices []int) ([]float64, error) {
			time.Sleep(time.Second)
			return load(ctx, indices)
		}
		tr.Train = d
		tr.Callbacks = []Callback{&Profiler{Out: []*bytes.Buffer{&out, &other}[rank]}}
	})
	none(t, errs)
	for _, want := range []string{
		"phase                         total       a step  share\n",
		"data                            21s           1s  33.3%\n",
		"forward and backward            21s           1s  33.3%\n",
		"waiting for gradients           21s           1s  33.3%\n", // for rank 1, which is slower
		"optimiser                        0s           0s   0.0%\n",
		"run                            1m3s           3s 100.0%\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
	if other.Len() > 0 {
		t.Errorf("rank 1 writes %s", other.String())
	}
}
