package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/testnet/memnet"
)

// TestCheckpointResume stops a run at a checkpoint and goes on with other numbers of
// ranks: the end is that of a run which was never stopped, to the bit. An epoch has four
// steps, so that the checkpoint is in the middle of the second.
func TestCheckpointResume(t *testing.T) {
	data, dir := loadSome(t, trainDigits/2, testDigits), t.TempDir()
	run := func(n, steps int, c *Checkpointing) epochFacts {
		t.Helper()
		p := (&Training{Net: netConvNet, Epochs: new(2), Steps: steps, BatchSize: new(32 / n), NoDropout: true}).plan(n, n)
		records, errs := everyRank(t, n, data, func(int) plan { return p }, func(r *training, w *memnet.World) error { return kept(t.Context(), r, w, c) })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return records[0].last
	}
	whole := run(2, 0, &Checkpointing{Every: 5, Keep: 3})
	run(2, 7, &Checkpointing{Checkpoint: dir, Every: 5, Keep: 2}) // its last two steps are lost
	if kept, err := filepath.Glob(filepath.Join(dir, "step-*5-epoch-*")); err != nil || len(kept) != 1 {
		t.Fatalf("checkpoints %v, %v; want that of step 5", kept, err)
	}
	for _, n := range []int{4, 1} {
		again := run(n, 0, &Checkpointing{Checkpoint: dir, Every: 1 << 20, Keep: 2, Resume: true})
		if again.hash != whole.hash || again.steps != whole.steps || again.epoch != whole.epoch {
			t.Errorf("%d ranks resume and end at step %d of epoch %d with %s; undisturbed at %d of %d with %s",
				n, again.steps, again.epoch, again.hash, whole.steps, whole.epoch, whole.hash)
		}
	}
}

// TestResumeNothing begins where there is nothing to resume from.
func TestResumeNothing(t *testing.T) {
	p := (&Training{Net: netConvNet, Steps: 1, BatchSize: new(8)}).plan(1, 1)
	records, errs := everyRank(t, 1, load(t), func(int) plan { return p }, func(r *training, w *memnet.World) error {
		return kept(t.Context(), r, w, &Checkpointing{Checkpoint: t.TempDir(), Every: 1, Keep: 1, Resume: true})
	})
	if errs[0] != nil || records[0].last.steps != 1 {
		t.Errorf("%v, %+v", errs[0], records[0].last)
	}
}

// TestCheckpointFails: what cannot be written is no reason to stop.
func TestCheckpointFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	p := (&Training{Net: netConvNet, Steps: 2, BatchSize: new(8)}).plan(2, 2)
	_, errs := everyRank(t, 2, load(t), func(int) plan { return p }, func(r *training, w *memnet.World) error {
		return kept(t.Context(), r, w, &Checkpointing{Checkpoint: file, Every: 1, Keep: 1})
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestMeasured trains over links that were measured first.
func TestMeasured(t *testing.T) {
	p := (&Training{Net: netConvNet, Steps: 1, BatchSize: new(8)}).plan(2, 2)
	_, errs := everyRank(t, 2, load(t), func(int) plan { return p }, func(r *training, w *memnet.World) error {
		return kept(t.Context(), r, w, &Checkpointing{Every: 1, Keep: 1, Measure: true})
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestUnevenSteps: ranks without a sample in the last step of an epoch take part.
func TestUnevenSteps(t *testing.T) {
	p := (&Training{Net: netConvNet, BatchSize: new(17), NoDropout: true}).plan(5, 5) // 256 = 3·85 + 1
	records, errs := everyRank(t, 5, load(t), func(int) plan { return p }, func(r *training, w *memnet.World) error { return whole(t.Context(), r, w) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, r := range records {
		if r.last.steps != 4 || r.epochs[0].samples != trainDigits {
			t.Errorf("rank %d: %+v", rank, r.epochs)
		}
	}
}

// TestSettingsSay what must be alike beside the recipe.
func TestSettingsSay(t *testing.T) {
	s := &session{process: &process{stdout: new(strings.Builder)}, local: 1}
	s.cmd = &trainCmd{Min: 2, Quorum: "any", Joining: Joining{World: 4},
		Training: Training{Net: netConvNet, Checkpointing: Checkpointing{Checkpoint: "d", Every: 7, Measure: true}}}
	want := "--min 2, --quorum any, --checkpoint, --every 7, --resume false, --measure"
	if got := s.training(nil).more; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
