package gpu

import (
	"errors"
	"slices"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer/data"
)

var _ data.Memory = (*Pins)(nil)

// rows is a loader of 9 samples of 4 numbers, by 2, in pinned memory.
func rows(t *testing.T, p *Pins) *data.Loader[[]float32, []float32] {
	t.Helper()
	set := data.Func[[]float32]{N: 9, F: func(i int) ([]float32, error) {
		return []float32{float32(i), 1, 2, 3}, nil
	}}
	l, err := data.NewLoader(set, data.Config[[]float32, []float32]{Batch: 2, Workers: 3, Memory: p, Collate: data.Rows[float32]})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A loader's batches lie in pinned memory, from which a stream copies them to the device, and
// all of it is given back.
func TestPinsOfALoader(t *testing.T) {
	d := opened(t, Config{})
	before := alive(t)
	p, s, m := d.Pins(), streamed(t, d), allocated(t, d, 32)
	l := rows(t, p)
	batches := 0
	for batch, err := range l.Epoch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		view, ok := tensor.Of(batch).View(0, int64(4*len(batch)))
		if !ok {
			t.Fatal("a batch that the host cannot see")
		}
		pin, err := p.Pinned(view)
		if err == nil {
			err = errors.Join(s.ToDeviceN(m, 0, pin, len(view)), s.Sync())
		}
		if err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len(view))
		if _, err := m.ReadAt(back, 0); err != nil || !slices.Equal(back, view) {
			t.Errorf("batch %d is %x on the device, %x here, %v", batches, back, view, err)
		}
		batches++
	}
	if err := l.Close(); err != nil || batches != 5 || len(p.out) > 0 {
		t.Errorf("%d batches, %d pieces are still out, %v", batches, len(p.out), err)
	}
	if err := errors.Join(s.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if after := alive(t); after != before {
		t.Errorf("%v: %v alive, %v before", kinds, after, before)
	}
}

// What is not pinned here is not freed, and what cannot be pinned is an error of the loop.
func TestPinsRefuse(t *testing.T) {
	d := opened(t, Config{})
	p := d.Pins()
	for _, b := range [][]byte{nil, make([]byte, 8)} {
		if err := p.Free(b); !errors.Is(err, errNotPinned) {
			t.Errorf("%d bytes of Go's: %v", len(b), err)
		}
	}
	b, err := p.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Free(b)); err != nil {
		t.Error(err)
	}
	if err := p.Free(b); !errors.Is(err, errNotPinned) {
		t.Errorf("freed again: %v", err)
	}
	fail(t, EnvCUDA, "cuMemHostAlloc", 1, 2)
	l := rows(t, p)
	var last error
	for _, err := range l.Epoch(t.Context()) {
		last = err
	}
	if err := l.Close(); err != nil || !errors.Is(last, ErrOutOfMemory) {
		t.Errorf("without memory to pin: %v, %v", last, err)
	}
}
