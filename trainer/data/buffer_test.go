package data_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/trainer/data"
)

// pool is a Memory that counts, and notices what is freed wrongly.
type pool struct {
	mu     sync.Mutex
	out    map[*byte]int
	allocs int
	most   int
	err    error // of the next call
	skew   int   // bytes that slices begin after an aligned address
	short  int   // bytes that slices lack
}

func (p *pool) Alloc(n int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	if p.out == nil {
		p.out = make(map[*byte]int)
	}
	b := make([]byte, n+p.skew)[p.skew : n+p.skew-p.short]
	p.out[&b[0]] = len(b)
	p.allocs++
	p.most = max(p.most, len(p.out))
	return b, nil
}

func (p *pool) Free(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out[&b[0]] != len(b) {
		return errors.New("freed what is not out")
	}
	delete(p.out, &b[0])
	return p.err
}

func TestMemoryIsUsedAgainAndGivenBack(t *testing.T) {
	p := new(pool)
	c := config{Batch: 3, Workers: 2, Prefetch: 2, Memory: p, Collate: ints}
	l, err := data.NewLoader(numbers(300), c)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		take(t, l, -1)
	}
	if p.allocs > 3 {
		t.Errorf("%d allocations for 300 batches, of which there are 3 at a time", p.allocs)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(p.out) > 0 {
		t.Errorf("%d are still out", len(p.out))
	}
}

// The batch in hand stays what it is while others are made.
func TestBatchInHandIsNotTouched(t *testing.T) {
	l := loader(t, numbers(200), config{Batch: 2, Workers: 3, Prefetch: 4})
	at := int64(0)
	for x, err := range l.Epoch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if !slices.Equal(x, []int64{at, at + 10}) {
				t.Fatalf("%v at %d", x, at)
			}
		}
		at += 20
	}
}

func TestPiecesGrow(t *testing.T) {
	p := new(pool)
	set := data.Slice[int]{1, 40, 2, 90, 0}
	l := loader(t, set, config{Prefetch: 1, Memory: p, Collate: func(b *data.Buffer, s []data.Sample[int]) ([]int64, error) {
		if _, err := data.Take[float32](b, s[0].Value); err != nil {
			return nil, err
		}
		flags, err := data.Take[bool](b, 3)
		if err != nil || flags[0] || flags[1] || flags[2] {
			t.Errorf("%v, %v", flags, err)
		}
		return data.Take[int64](b, 2*s[0].Value)
	}})
	for x, err := range l.Epoch(t.Context()) {
		if err != nil || len(x) != cap(x) {
			t.Errorf("%d of %d, %v", len(x), cap(x), err)
		}
	}
	if p.most > 6 {
		t.Errorf("%d pieces at a time, of two batches of three", p.most)
	}
}

func TestMemoryThatFails(t *testing.T) {
	broken := errors.New("out of pins")
	for name, c := range map[string]struct {
		pool *pool
		want string
	}{
		"alloc": {&pool{err: broken}, "out of pins"}, "skewed": {&pool{skew: 1}, "not aligned"}, "short": {&pool{short: 1}, "it gave 63"},
	} {
		l, err := data.NewLoader(numbers(3), config{Memory: c.pool, Collate: ints})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range l.Epoch(t.Context()) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := l.Close(); err != nil || len(c.pool.out) > 0 {
			t.Errorf("%s: %v, %d are out", name, err, len(c.pool.out))
		}
	}
	p := new(pool)
	l, err := data.NewLoader(numbers(3), config{Memory: p, Collate: ints})
	if err != nil {
		t.Fatal(err)
	}
	take(t, l, -1)
	p.err = broken
	if err := l.Close(); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestTakeIsBounded(t *testing.T) {
	l := loader(t, numbers(1), config{Collate: func(b *data.Buffer, _ []data.Sample[int]) ([]int64, error) {
		if _, err := data.Take[float64](b, data.MaxPiece/8+1); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Error(err)
		}
		for range data.MaxPieces {
			if _, err := data.Take[int8](b, 0); err != nil {
				t.Fatal(err)
			}
		}
		return data.Take[int64](b, 0)
	}})
	for _, err := range l.Epoch(t.Context()) {
		if err == nil || !strings.Contains(err.Error(), "pieces") {
			t.Error(err)
		}
	}
}

func TestRows(t *testing.T) {
	rows := func(set data.Slice[[]float32]) ([]float32, error) {
		l, err := data.NewLoader(set, data.Config[[]float32, []float32]{Batch: 2, Collate: data.Rows[float32]})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for x, err := range l.Epoch(t.Context()) {
			return slices.Clone(x), err
		}
		return nil, nil
	}
	if got, err := rows(data.Slice[[]float32]{{1, 2}, {3, 4}}); err != nil || !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := rows(data.Slice[[]float32]{{}, {}}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	_, err := rows(data.Slice[[]float32]{{1, 2}, {3}})
	if wrong, ok := errors.AsType[*data.SampleError](err); !ok || wrong.Index != 1 {
		t.Error(err)
	}
	if x, err := data.Rows[float32](new(data.Buffer), nil); x != nil || err != nil {
		t.Errorf("%v, %v", x, err)
	}
}
