package tensortest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"peermesh/ops/tensor"
)

// seed makes every run of the suite the same.
const seed = 1

// start gives a memory known contents and returns a copy of them.
func start(m tensor.Memory) ([]byte, error) {
	want := make([]byte, size)
	Fill(want, tensor.Uint8, rand.New(rand.NewPCG(seed, 0)))
	if n, err := m.WriteAt(want, 0); n != size || err != nil {
		return nil, fmt.Errorf("WriteAt of all %d bytes: %d, %v", size, n, err)
	}
	return want, nil
}

// holds checks that a memory's contents are these.
func holds(m tensor.Memory, want []byte, after string) error {
	got := make([]byte, len(want))
	if n, err := m.ReadAt(got, 0); n != len(want) || err != nil {
		return fmt.Errorf("ReadAt of all %d bytes after %s: %d, %v", len(want), after, n, err)
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d is %#x after %s, want %#x", i, got[i], after, want[i])
		}
	}
	return nil
}

// checkReadWrite moves ranges of all small sizes at all small offsets, and some
// that end at the memory's end.
func checkReadWrite(m tensor.Memory) error {
	want, err := start(m)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range 20 {
		for _, off := range []int{0, 1, 2, 3, 7, 8, 63, 64, size - n} {
			p := make([]byte, n)
			if k, err := m.ReadAt(p, int64(off)); k != n || err != nil || !bytes.Equal(p, want[off:off+n]) {
				return fmt.Errorf("ReadAt of %d bytes at %d: %x (%d, %v), want %x", n, off, p, k, err, want[off:off+n])
			}
			Fill(p, tensor.Uint8, r)
			copy(want[off:], p)
			if k, err := m.WriteAt(p, int64(off)); k != n || err != nil {
				return fmt.Errorf("WriteAt of %d bytes at %d: %d, %v", n, off, k, err)
			}
			if err := holds(m, want, fmt.Sprintf("WriteAt of %d bytes at %d", n, off)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEmpty moves nothing, at every place where nothing may be.
func checkEmpty(m tensor.Memory) error {
	want, err := start(m)
	if err != nil {
		return err
	}
	for _, off := range []int64{0, 8, size} {
		_, errRead := m.ReadAt(nil, off)
		_, errWrite := m.WriteAt(nil, off)
		errReduce := m.ReduceAt(nil, off, tensor.Float64, tensor.Sum)
		if err := errors.Join(errRead, errWrite, errReduce); err != nil {
			return fmt.Errorf("no bytes at %d: %w", off, err)
		}
	}
	return holds(m, want, "moving no bytes")
}

// checkOutOfRange tries ranges that leave the memory on either side, some so far
// that off+n overflows. Nothing may move, not even the part within.
func checkOutOfRange(m tensor.Memory) error {
	want, err := start(m)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		off int64
		n   int
	}{
		{-8, 8}, {-8, 16}, {-8, 0}, {size, 8}, {size - 8, 16}, {size + 8, 0}, {0, size + 8},
		{math.MaxInt64 - 7, 8}, {math.MaxInt64 - 7, 16}, {math.MinInt64, 8}, {math.MinInt64, 0},
	} {
		p := bytes.Repeat([]byte{0xa5}, c.n)
		if n, err := m.ReadAt(p, c.off); n != 0 || err == nil {
			return fmt.Errorf("ReadAt of %d bytes at %d: %d, %v, want an error", c.n, c.off, n, err)
		}
		if !bytes.Equal(p, bytes.Repeat([]byte{0xa5}, c.n)) {
			return fmt.Errorf("ReadAt of %d bytes at %d failed and wrote to p", c.n, c.off)
		}
		if n, err := m.WriteAt(p, c.off); n != 0 || err == nil {
			return fmt.Errorf("WriteAt of %d bytes at %d: %d, %v, want an error", c.n, c.off, n, err)
		}
		if err := m.ReduceAt(p, c.off, tensor.Int64, tensor.Sum); err == nil {
			return fmt.Errorf("ReduceAt of %d bytes at %d: no error", c.n, c.off)
		}
	}
	return holds(m, want, "calls out of range")
}

// checkReduce tries every element type and reduction, messages at every
// alignment, short and long, at places of every alignment that an element has.
func checkReduce(m tensor.Memory) error {
	r := rand.New(rand.NewPCG(seed, 2))
	for _, t := range DTypes() {
		pool := make([]byte, 8*size)
		Fill(pool, t, r)
		draw := func(p []byte) { copy(p, pool[r.IntN((len(pool)-len(p))/t.Size())*t.Size():]) }
		for _, op := range Ops(t) {
			for _, n := range []int{1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 67} {
				for shift := range 9 {
					if err := tryReduce(m, t, op, shift*t.Size(), n*t.Size(), shift, draw); err != nil {
						return err
					}
				}
			}
			if err := tryReduce(m, t, op, 0, size, 1, draw); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryReduce folds a message of n bytes that begins shift bytes off alignment.
// draw makes elements.
func tryReduce(m tensor.Memory, t tensor.DType, op tensor.Op, off, n, shift int, draw func(p []byte)) error {
	name := fmt.Sprintf("%v %v of %d bytes at %d, from an address that is %d off", t, op, n, off, shift)
	before, p := make([]byte, size), make([]byte, n+shift)[shift:]
	draw(before)
	draw(p)
	if _, err := m.WriteAt(before, 0); err != nil {
		return fmt.Errorf("%s: WriteAt: %w", name, err)
	}
	sent, got := bytes.Clone(p), make([]byte, size)
	if err := m.ReduceAt(p, int64(off), t, op); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !bytes.Equal(p, sent) {
		return fmt.Errorf("%s: the message was changed", name)
	}
	if _, err := m.ReadAt(got, 0); err != nil {
		return fmt.Errorf("%s: ReadAt: %w", name, err)
	}
	want := bytes.Clone(before)
	Reduce(want[off:off+n], p, t, op)
	for i := 0; i < size && !bytes.Equal(got, want); i += t.Size() {
		if j := i + t.Size(); !Equal(got[i:j], want[i:j], t) {
			return fmt.Errorf("%s: element %d is %x, want %x", name, i/t.Size(), got[i:j], want[i:j])
		}
	}
	return nil
}

// checkArguments tries ReduceAt on what is no whole number of elements, and on
// types and reductions that are none.
func checkArguments(m tensor.Memory) error {
	want, err := start(m)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		n   int
		off int64
		t   tensor.DType
		op  tensor.Op
	}{
		{7, 0, tensor.Float64, tensor.Sum}, {8, 4, tensor.Float64, tensor.Sum},
		{6, 0, tensor.Int32, tensor.Sum}, {4, 2, tensor.Float32, tensor.Max},
		{8, 0, 0, tensor.Sum}, {8, 0, 255, tensor.Sum}, {0, 0, 0, tensor.Sum},
		{8, 0, tensor.Int64, tensor.Op{}}, {0, 0, tensor.Int64, tensor.Op{}},
		{8, 0, tensor.Float32, tensor.BitOr}, {8, 0, tensor.BFloat16, tensor.BitXor}, {8, 0, tensor.Bool, tensor.Avg},
		{8, 0, tensor.Int8, tensor.PremulSum(.5)}, {8, 0, tensor.Int32, absmax},
	} {
		if err := m.ReduceAt(make([]byte, c.n), c.off, c.t, c.op); err == nil {
			return fmt.Errorf("ReduceAt of %d bytes at %d, %v %v: no error", c.n, c.off, c.t, c.op)
		}
	}
	return holds(m, want, "calls with wrong arguments")
}

// checkDisjoint uses neighbouring ranges from several goroutines, as the lanes
// of a collective do. The race detector sees what the contents do not show.
func checkDisjoint(m tensor.Memory) error {
	const lanes, each = 8, size / 8
	if _, err := m.WriteAt(make([]byte, size), 0); err != nil {
		return fmt.Errorf("WriteAt of zeros: %w", err)
	}
	errs := make([]error, lanes)
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			p := bytes.Repeat([]byte{1}, each)
			for range lane + 1 {
				errs[lane] = errors.Join(errs[lane], m.ReduceAt(p, int64(lane*each), tensor.Uint8, tensor.Sum))
			}
			_, err := m.ReadAt(p, int64(lane*each))
			errs[lane] = errors.Join(errs[lane], err)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("disjoint ranges: %w", err)
	}
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i/each + 1)
	}
	return holds(m, want, "sums into disjoint ranges")
}

// checkView checks that lent bytes are the memory itself, no fewer and no more.
func checkView(m tensor.Memory) error {
	v, ok := m.(tensor.Viewer)
	if !ok {
		return nil
	}
	want, err := start(m)
	if err != nil {
		return err
	}
	for _, c := range [][2]int64{{-1, 1}, {0, -1}, {size, 1}, {size - 1, 2}, {math.MaxInt64, math.MaxInt64}} {
		if p := v.View(c[0], c[1]); p != nil {
			return fmt.Errorf("View of %d bytes at %d: %d bytes, want nil", c[1], c[0], len(p))
		}
	}
	p := v.View(3, 5)
	if !bytes.Equal(p, want[3:8]) {
		return fmt.Errorf("View of 5 bytes at 3: %x, want %x", p, want[3:8])
	}
	if cap(p) != len(p) {
		return fmt.Errorf("View of 5 bytes at 3 has a capacity of %d, so that append writes past it", cap(p))
	}
	p[0]++
	want[3]++
	return holds(m, want, "a change through View")
}
