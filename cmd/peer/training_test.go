package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
)

// A record is a reporter that keeps what it is told.
type record struct {
	start    startFacts
	steps    []stepFacts
	epochs   []epochFacts
	last     epochFacts
	accuracy float64
}

func (r *record) listening([]entrance, []string) error { return nil }
func (r *record) world(w worldFacts) error             { return nil }
func (r *record) ended(w worldFacts) error             { return nil }
func (r *record) started(s startFacts) error           { r.start = s; return nil }
func (r *record) step(s stepFacts) error               { r.steps = append(r.steps, s); return nil }
func (r *record) epoch(e epochFacts) error             { r.epochs = append(r.epochs, e); return nil }
func (r *record) done(e epochFacts, accuracy float64) error {
	r.last, r.accuracy = e, accuracy
	return nil
}

// everyRank runs f on n ranks that share an in-memory world, each with its plan.
func everyRank(t *testing.T, n int, data *mnist.Data, p func(rank int) plan, f func(r *training, w *memnet.World) error) ([]*record, []error) {
	t.Helper()
	worlds := memnet.New(n)
	records, errs := make([]*record, n), make([]error, n)
	var all sync.WaitGroup
	for rank, w := range worlds {
		records[rank] = new(record)
		run := &training{plan: p(rank), data: data, reporter: records[rank], peer: func(rank int) string { return fmt.Sprint("peer-", rank) }}
		if run.plan.net == netTutorial {
			run.group = ops.NewGroup(w, groupConfig) // the other net's runs make their own, one a world
		}
		all.Go(func() { errs[rank] = f(run, w) })
	}
	all.Wait()
	return records, errs
}

// A single is a mesh with one world in its life.
type single struct {
	world *memnet.World
	over  func() error
	taken bool
}

type lasting struct{ *memnet.World }

func (lasting) Newcomers() error { return nil }

func (lasting) Carried() {}

func (lasting) Advanced() {}

func (s *single) Next(context.Context) (trainer.World, error) {
	if err := s.over(); err != nil {
		return nil, err
	}
	if s.taken {
		return nil, context.Cause(s.world.Context())
	}
	s.taken = true
	return lasting{s.world}, nil
}

// whole is a rank's whole run on one world, as the command has it.
func whole(ctx context.Context, r *training, w *memnet.World) error {
	return kept(ctx, r, w, &Checkpointing{Every: 200, Keep: 3})
}

func kept(ctx context.Context, r *training, w *memnet.World, c *Checkpointing) error {
	if r.plan.net == netTutorial {
		return r.run(ctx)
	}
	e, err := newElastic(r, c)
	if err != nil {
		return err
	}
	e.present = func() func(int) string { return r.peer }
	if err := e.Run(ctx, &single{world: w, over: e.over}); err != nil {
		return err
	}
	return e.done(ctx)
}

func load(t *testing.T) *mnist.Data {
	t.Helper()
	return loadSome(t, trainDigits, testDigits)
}

func loadSome(t *testing.T, train, test int) *mnist.Data {
	t.Helper()
	data, err := loadData(t.Context(), writeSomeDigits(t, train, test))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// train runs a whole training on n ranks, which must succeed and agree.
func train(t *testing.T, n int, data *mnist.Data, flags Training) []*record {
	t.Helper()
	p := flags.plan(n, n)
	records, errs := everyRank(t, n, data, func(int) plan { return p }, func(r *training, w *memnet.World) error { return whole(t.Context(), r, w) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, r := range records {
		if first := records[0]; r.last.hash != first.last.hash || r.last.loss != first.last.loss || r.accuracy != first.accuracy {
			t.Errorf("rank %d ends with %+v, rank 0 with %+v", rank, r.last, first.last)
		}
	}
	return records
}

// TestTrainingLearns trains both networks on an easy data set.
func TestTrainingLearns(t *testing.T) {
	data := load(t)
	for n, flags := range map[int]Training{
		2: {Net: netConvNet, Epochs: new(2), BatchSize: new(32)},
		3: {Net: netTutorial, Epochs: new(3), BatchSize: new(16), LR: new(0.2), NoDropout: true},
	} {
		records := train(t, n, data, flags)
		r := records[0]
		if first, last := r.epochs[0], r.last; !(last.loss < first.loss) || r.accuracy < 0.8 {
			t.Errorf("%s: loss %.3f, then %.3f, accuracy %.2f", flags.Net, first.loss, last.loss, r.accuracy)
		}
		if got := len(r.epochs); got != *flags.Epochs || r.last.epoch != got || len(r.steps) != r.last.steps || r.start.steps != r.last.steps {
			t.Errorf("%s: %d epochs, %d of %d steps, announced %d; last %+v", flags.Net, got, len(r.steps), r.last.steps, r.start.steps, r.last)
		}
	}
}

// TestTrainingWorldSize has 1, 2, 4 and 8 ranks share the same global batches
// without dropout: they must learn the same, to the bit.
func TestTrainingWorldSize(t *testing.T) {
	data := load(t)
	var alone epochFacts
	for _, n := range []int{1, 2, 4, 8} {
		r := train(t, n, data, Training{Net: netConvNet, Steps: 2, BatchSize: new(64 / n), NoDropout: true})
		f := r[0].last
		if n == 1 {
			alone = f
		}
		if f.steps != 2 {
			t.Errorf("%d ranks took %d steps, want 2", n, f.steps)
		}
		if f.hash != alone.hash {
			t.Errorf("%d ranks end with parameters %s, one alone with %s", n, f.hash, alone.hash)
		}
		// Each rank adds up its own losses, so these are rounded in another order.
		if math.Abs(f.loss-alone.loss) > 1e-12 || math.Abs(f.lastLoss-alone.lastLoss) > 1e-12 {
			t.Errorf("%d ranks: loss %v and %v at last, alone %v and %v", n, f.loss, f.lastLoss, alone.loss, alone.lastLoss)
		}
	}
}

// TestAgree starts one rank with other flags: each rank learns who and which.
func TestAgree(t *testing.T) {
	data := load(t)
	_, errs := everyRank(t, 3, data, func(rank int) plan {
		p := (&Training{Net: netConvNet}).plan(3, 3)
		if rank == 1 {
			p.batch, p.seed = 7, 3
		}
		return p
	}, func(r *training, w *memnet.World) error { return whole(t.Context(), r, w) })
	odd := "started with --batch-size 7, --seed 3, this rank with --batch-size 42, --seed 0"
	even := "started with --batch-size 42, --seed 0, this rank with --batch-size 7, --seed 3"
	for rank, want := range []string{"rank 1 (peer-1) was " + odd, "rank 0 (peer-0) was " + even, "rank 1 (peer-1) was " + odd} {
		if err := errs[rank]; exitStatus(err) != statusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want status 2 and %q", rank, err, want)
		}
	}
}

// TestSettingsFit has the longest settings that flags can say.
func TestSettingsFit(t *testing.T) {
	p := plan{net: netTutorial, epochs: math.MaxInt, steps: math.MaxInt, batch: math.MaxInt, seed: math.MaxUint64,
		lr: -math.SmallestNonzeroFloat64, dropout: false}
	huge := &mnist.Set{Labels: make([]byte, 1<<20)}
	r := &training{plan: p, data: &mnist.Data{Train: huge, Test: huge}}
	if got := len(r.settings()); got > settingsSize {
		t.Errorf("settings of %d bytes, want at most %d", got, settingsSize)
	}
}

func TestPeersText(t *testing.T) {
	if got := text([]byte("a\x1b[31m\nb\xff\x00\x00")); got != "a?[31m?b?" {
		t.Errorf("a peer's text is shown as %q", got)
	}
}

// TestCompare changes one bit on one rank: all ranks must name it.
func TestCompare(t *testing.T) {
	data := load(t)
	_, errs := everyRank(t, 3, data, func(int) plan { return (&Training{Net: netTutorial}).plan(3, 3) }, func(r *training, _ *memnet.World) (err error) {
		if r.recipe, err = r.newTutorial(); err != nil {
			return err
		}
		if r.group.Rank() == 2 {
			x, _ := tensor.Data[float32](r.recipe.params[0].Value)
			x[0] = math.Float32frombits(math.Float32bits(x[0]) ^ 1)
		}
		_, err = r.compare(t.Context())
		return err
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "parameters differ: rank 0 (peer-0) has ") || !strings.Contains(err.Error(), "but rank 2 (peer-2) ") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestTrainingCancelled ends the context in mid-run.
func TestTrainingCancelled(t *testing.T) {
	data := load(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, errs := everyRank(t, 1, data, func(int) plan { return (&Training{Net: netTutorial}).plan(1, 1) }, func(r *training, w *memnet.World) error {
		cancel()
		return whole(ctx, r, w)
	})
	if !errors.Is(errs[0], context.Canceled) {
		t.Errorf("run: %v, want it cancelled", errs[0])
	}
}
