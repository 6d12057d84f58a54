package data_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/trainer"
	"peermesh/trainer/data"
)

// numbers is the set 0, 10, 20 … of n.
func numbers(n int) data.Dataset[int] {
	return data.Func[int]{N: n, F: func(i int) (int, error) { return 10 * i, nil }}
}

// ints is a Collate that copies the samples.
func ints(b *data.Buffer, samples []data.Sample[int]) ([]int64, error) {
	x, err := data.Take[int64](b, len(samples))
	for k := range x {
		x[k] = int64(samples[k].Value)
	}
	return x, err
}

// noisy is ints with a random number added.
func noisy(b *data.Buffer, samples []data.Sample[int]) ([]int64, error) {
	x, err := ints(b, samples)
	for k, s := range samples {
		x[k] += s.Rand().Int64N(1 << 20)
	}
	return x, err
}

type config = data.Config[int, []int64]

func loader(t *testing.T, set data.Dataset[int], c config) *data.Loader[int, []int64] {
	t.Helper()
	if c.Collate == nil {
		c.Collate = ints
	}
	l, err := data.NewLoader(set, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func sampler(t *testing.T, n int) trainer.Sampler {
	t.Helper()
	s, err := trainer.NewRandomSampler(n, trainer.RandomConfig{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take reads at most so many batches, as text.
func take(t *testing.T, l *data.Loader[int, []int64], most int) (got []string) {
	t.Helper()
	if most == 0 {
		return nil
	}
	for x, err := range l.Epoch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, fmt.Sprint(x)); len(got) == most {
			break
		}
	}
	return got
}

func TestBatchesComeInOrder(t *testing.T) {
	for _, c := range []struct {
		n    int
		c    config
		want string
	}{
		{5, config{Batch: 2}, "[[0 10] [20 30] [40]]"},
		{5, config{Batch: 2, DropLast: true, Workers: 3}, "[[0 10] [20 30]]"},
		{2, config{Workers: 9, Prefetch: 1}, "[[0] [10]]"},
		{1, config{Batch: 4, DropLast: true}, "[]"},
		{0, config{}, "[]"},
	} {
		l := loader(t, numbers(c.n), c.c)
		for range 2 {
			if got := take(t, l, -1); fmt.Sprint(got) != c.want || len(got) != l.Len() {
				t.Errorf("%d, %+v: %v, Len %d", c.n, c.want, got, l.Len())
			}
		}
		if at := l.State(); at.Epoch != 2 || at.Batch != 0 {
			t.Errorf("at %+v", at)
		}
	}
}

// The same bits for any number of workers, though each takes its own time.
func TestWorkersDoNotShow(t *testing.T) {
	slow := data.Func[int]{N: 50, F: func(i int) (int, error) {
		time.Sleep(time.Duration(i*i%17) * time.Millisecond)
		return i, nil
	}}
	var want []string
	for _, workers := range []int{1, 2, 5} {
		for _, prefetch := range []int{1, 3, 60} {
			synctest.Test(t, func(t *testing.T) {
				l := loader(t, slow, config{Sampler: sampler(t, 50), Batch: 4, Workers: workers, Prefetch: prefetch, Seed: 1, Collate: noisy})
				got := append(take(t, l, -1), take(t, l, -1)...)
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d workers, %d ahead: %v, want %v", workers, prefetch, got, want)
				}
			})
		}
	}
	if half := len(want) / 2; slices.Equal(want[:half], want[half:]) {
		t.Error("two epochs are alike")
	}
}

// From wherever a run stops, a new loader gives what the old one would have, the
// random numbers too.
func TestResumeAnywhere(t *testing.T) {
	c := config{Sampler: sampler(t, 11), Batch: 2, Seed: 3, Collate: noisy, Workers: 2}
	l := loader(t, numbers(11), c)
	whole := append(take(t, l, -1), take(t, l, -1)...)
	for stop := range len(whole) {
		first := loader(t, numbers(11), c)
		got := take(t, first, min(stop, 6))
		if stop > 6 {
			got = append(got, take(t, first, stop-6)...)
		}
		p, err := json.Marshal(first.State())
		if err != nil {
			t.Fatal(err)
		}
		var at data.Position
		if err := json.Unmarshal(p, &at); err != nil {
			t.Fatal(err)
		}
		second := loader(t, numbers(11), c)
		if err := second.Restore(at); err != nil {
			t.Fatal(err)
		}
		for len(got) < len(whole) {
			got = append(got, take(t, second, -1)...)
		}
		if !slices.Equal(got, whole) {
			t.Errorf("stopped after %d (%+v): %v, want %v", stop, at, got, whole)
		}
	}
}

// A loop that breaks off and another over the same loader are as one.
func TestBreakGoesOn(t *testing.T) {
	l := loader(t, numbers(6), config{Batch: 2})
	got := append(take(t, l, 1), take(t, l, -1)...)
	if fmt.Sprint(got) != "[[0 10] [20 30] [40 50]]" {
		t.Error(got)
	}
	l.SetEpoch(7)
	take(t, l, 1)
	if at := l.State(); at != (data.Position{Epoch: 7, Batch: 1, Batches: 3, Samples: 6}) {
		t.Errorf("%+v", at)
	}
}

func TestRestoreRefusesOthers(t *testing.T) {
	l := loader(t, numbers(6), config{Batch: 2, Seed: 5})
	good := l.State()
	for name, change := range map[string]func(p *data.Position){
		"epoch": func(p *data.Position) { p.Epoch = -1 }, "batch": func(p *data.Position) { p.Batch = 4 },
		"before": func(p *data.Position) { p.Batch = -1 }, "batches": func(p *data.Position) { p.Batches++ },
		"samples": func(p *data.Position) { p.Samples-- }, "seed": func(p *data.Position) { p.Seed++ },
	} {
		p := good
		change(&p)
		if err := l.Restore(p); err == nil || l.State() != good {
			t.Errorf("%s: went to %+v, %v", name, l.State(), err)
		}
	}
	end := good
	end.Batch = 3
	if err := l.Restore(end); err != nil || len(take(t, l, -1)) != 0 || l.State().Epoch != 1 {
		t.Errorf("%v, at %+v", err, l.State())
	}
}

// No more batches are made than Prefetch, beside the one in hand.
func TestPrefetchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		set := data.Func[int]{N: 100, F: func(i int) (int, error) { made.Add(1); return i, nil }}
		l := loader(t, set, config{Workers: 4, Prefetch: 3})
		used := int64(0)
		for _, err := range l.Epoch(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			used++
			synctest.Wait()
			if n := made.Load(); n != min(used+3, 100) {
				t.Fatalf("%d are made when %d are used", n, used)
			}
		}
	})
}

func TestRandIsTheSamplesOwn(t *testing.T) {
	seen := make(map[uint64]string)
	draw := func(seed uint64) {
		l := loader(t, numbers(3), config{Batch: 3, Seed: seed, Collate: func(b *data.Buffer, samples []data.Sample[int]) ([]int64, error) {
			for _, s := range samples {
				x := s.Rand().Uint64()
				if x != s.Rand().Uint64() {
					t.Error("asked twice, it differs")
				}
				if was, ok := seen[x]; ok {
					t.Errorf("sample %d of seed %d is as random as %s", s.Index, seed, was)
				}
				seen[x] = fmt.Sprintf("%d of seed %d", s.Index, seed)
			}
			return nil, nil
		}})
		for range 3 {
			take(t, l, -1)
		}
	}
	for seed := range uint64(3) {
		draw(seed)
	}
}
