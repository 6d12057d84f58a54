package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// TestAllReduceAcross has two hosts of equal and of unequal numbers of GPUs, and lengths
// that do not divide.
func TestAllReduceAcross(t *testing.T) {
	for _, c := range []struct{ first, second, parts, length int }{
		{2, 2, 2, 7}, {2, 2, 2, 1}, {2, 2, 1, 8}, {3, 1, 1, 5}, {2, 2, 2, 0}, {1, 1, 1, 3},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			links := make([][]*memnet.World, c.parts) // between the members of a rank
			for k := range links {
				links[k] = memnet.New(2)
			}
			var all sync.WaitGroup
			for host, size := range []int{c.first, c.second} {
				id, err := gpu.NewUniqueID()
				if err != nil {
					t.Skip(err)
				}
				for rank := range size {
					d, err := gpu.Open(gpu.Config{Ordinal: host*c.first + rank, Depth: 1, Chunk: 1024})
					if err != nil {
						t.Fatal(err)
					}
					all.Go(func() {
						err := reduceAcross(t.Context(), d, id, rank, size, c.first+c.second, c.parts, c.length, links, host)
						if err = errors.Join(err, d.Close()); err != nil {
							t.Errorf("host %d, rank %d: %v", host, rank, err)
						}
					})
				}
			}
			all.Wait()
		})
	}
}

// reduceAcross sums what all members have alike, and is a member.
func reduceAcross(ctx context.Context, d *gpu.Device, id gpu.UniqueID, rank, size, total, parts, length int, links [][]*memnet.World, host int) error {
	c, err := gpu.NewComm(ctx, d, id, rank, size)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	x, e := d.Alloc(tensor.Int32, length)
	ones := make([]int32, length)
	for i := range ones {
		ones[i] = int32(i + 1)
	}
	if err := errors.Join(err, e, tensor.Copy(x, tensor.Of(ones))); err != nil {
		return err
	}
	err = c.AllReduceAcross(ctx, s, x, tensor.Sum, parts, func(part tensor.Tensor) error {
		g := ops.NewGroup(links[rank][host], ops.Config{})
		return g.AllReduce(ctx, part, tensor.Sum).Wait()
	})
	if err := errors.Join(err, tensor.Copy(tensor.Of(ones), x), c.Close()); err != nil {
		return err
	}
	for i, v := range ones {
		if want := (i + 1) * total; int(v) != want {
			return fmt.Errorf("element %d is %d, want %d", i, v, want)
		}
	}
	return nil
}

// TestAcrossFails has the network fail on one member, and the others learn of it when
// their context ends.
func TestAcrossFails(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := gpu.NewUniqueID()
	if err != nil {
		t.Skip(err)
	}
	var all sync.WaitGroup
	for rank := range 2 {
		d, err := gpu.Open(gpu.Config{Ordinal: rank, Depth: 1, Chunk: 1024})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			c, err := gpu.NewComm(ctx, d, id, rank, 2)
			s, e := d.NewStream()
			x, e2 := d.Alloc(tensor.Int32, 4)
			if err := errors.Join(err, e, e2); err != nil {
				t.Error(err)
				return
			}
			for _, parts := range []int{0, 3} {
				if c.AllReduceAcross(ctx, s, x, tensor.Sum, parts, nil) == nil {
					t.Errorf("%d parts of 2 members", parts)
				}
			}
			if err := c.AllReduceAcross(ctx, s, x, tensor.Avg, 1, nil); !errors.Is(err, gpu.ErrNotNCCL) {
				t.Errorf("an average: %v", err)
			}
			err = c.AllReduceAcross(ctx, s, x, tensor.Sum, 1, func(tensor.Tensor) error {
				cancel()
				return broken
			})
			if rank == 0 && !errors.Is(err, broken) || rank == 1 && !errors.Is(err, context.Canceled) {
				t.Errorf("rank %d: %v", rank, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
