package gpu

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// A member is what a rank of a communicator under test has.
type member struct {
	*Comm
	d *Device
	s *Stream
}

// together runs f on every member of a communicator of n, each on a device of its own.
func together(t *testing.T, n int, f func(ctx context.Context, m member) error) {
	t.Helper()
	configs := make([]Config, n)
	for i := range configs {
		configs[i] = Config{Ordinal: i, Chunk: 4096, Depth: 1}
	}
	devices := openAll(t, configs...)
	before := tell(t, EnvNCCL, "fake_alive")
	id, err := NewUniqueID()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for rank, d := range devices {
		all.Go(func() {
			c, err := NewComm(ctx, d, id, rank, n)
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			s, err := d.NewStream()
			if err == nil {
				err = errors.Join(f(ctx, member{c, d, s}), c.Close(), s.Close())
			}
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
	if n := tell(t, EnvNCCL, "fake_alive") - before; n > 0 {
		t.Errorf("%d communicators are left", n)
	}
}

// filled is a tensor on a member's device of n elements that are all one value.
func (m member) filled(t tensor.DType, n, value int) (tensor.Tensor, error) {
	x, err := m.d.Alloc(t, n)
	if err != nil {
		return x, err
	}
	_, err = x.WriteAt(bytes.Repeat(element(t, value), n), 0)
	return x, err
}

// element is a small number as an element.
func element(t tensor.DType, value int) []byte { return scalar(t, float64(value)) }

// holds compares all elements of x with a value of each part of it.
func holdsValues(x tensor.Tensor, values ...int) error {
	got := make([]byte, x.Bytes())
	if _, err := x.ReadAt(got, 0); err != nil {
		return err
	}
	var want []byte
	for _, v := range values {
		want = append(want, bytes.Repeat(element(x.DType(), v), x.Len()/len(values))...)
	}
	if !bytes.Equal(got, want) {
		return errors.New("other elements than " + x.String() + " should have")
	}
	return nil
}

// commTypes are those that NCCL has.
func commTypes() (all []tensor.DType) {
	for _, t := range tensortest.DTypes() {
		if _, ok := ncclTypes[t]; ok {
			all = append(all, t)
		}
	}
	return all
}

// TestReductions reduces every type in every way, for everyone, for one, and in parts.
func TestReductions(t *testing.T) {
	const n = 3
	together(t, n, func(ctx context.Context, m member) error {
		for _, dtype := range commTypes() {
			for _, c := range []struct {
				op   tensor.Op
				want int
			}{
				{tensor.Sum, 12}, {tensor.Product, 48}, {tensor.Min, 2}, {tensor.Max, 6}, {tensor.Avg, 4}, {tensor.PremulSum(2), 24},
			} {
				op, want := c.op, c.want
				x, err := m.filled(dtype, 6, 2+2*m.Rank())
				y, e := m.filled(dtype, 2, 0)
				if err = errors.Join(err, e); err != nil {
					return err
				}
				err = errors.Join(m.ReduceScatter(ctx, m.s, y, x, op), m.Finish(ctx, m.s), holdsValues(y, want),
					m.AllReduce(ctx, m.s, x, x, op), m.Finish(ctx, m.s), holdsValues(x, want))
				if err = errors.Join(err, m.reduceTo(ctx, dtype, op, want)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// reduceTo reduces to the last rank, and looks whether the others' is as it was.
func (m member) reduceTo(ctx context.Context, dtype tensor.DType, op tensor.Op, want int) error {
	x, err := m.filled(dtype, 5, 2+2*m.Rank())
	y, e := m.filled(dtype, 5, 1)
	if m.Rank() != m.Size()-1 {
		want = 1
	}
	return errors.Join(err, e, m.Reduce(ctx, m.s, y, x, op, m.Size()-1), m.Finish(ctx, m.s), holdsValues(y, want))
}

// TestMoves gathers, broadcasts and exchanges, types that NCCL lacks too.
func TestMoves(t *testing.T) {
	const n = 3
	together(t, n, func(ctx context.Context, m member) error {
		for _, dtype := range tensortest.DTypes() {
			if dtype == tensor.Bool {
				continue // has no three values
			}
			one, err := m.filled(dtype, 4, 1+m.Rank())
			all, e := m.filled(dtype, 4*n, 0)
			next, e2 := m.filled(dtype, 4, 0)
			if err := errors.Join(err, e, e2); err != nil {
				return err
			}
			after, before := (m.Rank()+1)%n, (m.Rank()+n-1)%n
			err = errors.Join(
				m.AllGather(ctx, m.s, all, one), m.Finish(ctx, m.s), holdsValues(all, 1, 2, 3),
				m.Exchange(ctx, m.s, Transfer{Peer: after, Send: one}, Transfer{Peer: before, Recv: next}), m.Finish(ctx, m.s),
				holdsValues(next, 1+before),
				m.Exchange(ctx, m.s), m.Finish(ctx, m.s),
				m.Broadcast(ctx, m.s, one, 1), m.Finish(ctx, m.s), holdsValues(one, 2))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestCommArguments refuses what NCCL would crash on, or has not.
func TestCommArguments(t *testing.T) {
	d := opened(t, Config{Ordinal: 3})
	elsewhere, err := d.Alloc(tensor.Float32, 4)
	if err != nil {
		t.Fatal(err)
	}
	together(t, 1, func(ctx context.Context, m member) error {
		x, err := m.filled(tensor.Float32, 4, 1)
		short, e := m.filled(tensor.Float32, 3, 1)
		words, e2 := m.filled(tensor.Int16, 4, 1)
		if err := errors.Join(err, e, e2); err != nil {
			return err
		}
		host := tensor.New(tensor.Float32, 4)
		beyond := tensor.In(x.Memory(), tensor.Float32, 5)
		for i, err := range []error{
			m.AllReduce(ctx, m.s, short, x, tensor.Sum), m.AllReduce(ctx, m.s, host, x, tensor.Sum), m.AllReduce(ctx, m.s, x, elsewhere, tensor.Sum),
			m.AllReduce(ctx, m.s, beyond, beyond, tensor.Sum), m.AllReduce(ctx, m.s, x, x, tensor.BitOr), m.Reduce(ctx, m.s, x, x, tensor.Sum, 1),
			m.Broadcast(ctx, m.s, x, -1), m.ReduceScatter(ctx, m.s, short, x, tensor.Sum), m.AllGather(ctx, m.s, short, x),
			m.Exchange(ctx, m.s, Transfer{Peer: 1}), m.Exchange(ctx, m.s, make([]Transfer, maxTransfers+1)...),
			m.AllReduce(ctx, m.s, words, x, tensor.Sum),
		} {
			if err == nil {
				t.Errorf("call %d: no error", i)
			}
		}
		if err := m.AllReduce(ctx, m.s, words, words, tensor.Sum); !errors.Is(err, ErrNotNCCL) {
			t.Errorf("int16: %v", err)
		}
		fn := tensor.Func("f", func(a, b float32) float32 { return a })
		if err := m.AllReduce(ctx, m.s, x, x, fn); !errors.Is(err, ErrNotNCCL) {
			t.Errorf("a func: %v", err)
		}
		if m.String() != "rank 0 of a communicator of 1" {
			t.Error(m)
		}
		return holdsValues(x, 1)
	})
	for _, c := range [][2]int{{0, 0}, {1, 1}, {-1, 2}, {0, maxRanks + 1}} {
		if c, err := NewComm(t.Context(), d, UniqueID{}, c[0], c[1]); err == nil {
			t.Errorf("there is %v", c)
		}
	}
}

// TestDuplicate has two ranks on one device.
func TestDuplicate(t *testing.T) {
	d := opened(t, Config{})
	id, err := NewUniqueID()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for rank := range 2 {
		all.Go(func() {
			_, err := NewComm(t.Context(), d, id, rank, 2)
			var e *Error
			if !errors.As(err, &e) || e.Code != ncclInvalidUsage || !strings.Contains(err.Error(), "Duplicate GPU") {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
}
