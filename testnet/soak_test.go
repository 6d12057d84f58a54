package testnet_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

// soak skips what takes gigabytes; `make soak` runs it.
func soak(t *testing.T) {
	if os.Getenv("PEERMESH_SOAK") == "" {
		t.Skip("takes up to 7 GiB of memory: set PEERMESH_SOAK=1, or make soak")
	}
}

// numbered fills x so that a lost, doubled or moved element shows.
func numbered(x []uint64, seed uint64) {
	for i := range x {
		x[i] = (uint64(i) + seed) * 0x9E3779B97F4A7C15
	}
}

func same(x []uint64, seed uint64) error {
	for i, v := range x {
		if v != (uint64(i)+seed)*0x9E3779B97F4A7C15 {
			return fmt.Errorf("element %d of %d is another", i, len(x))
		}
	}
	return nil
}

// Two ranks that each send 256 MiB before either receives both complete, and
// need little memory beyond the tensors.
func TestSoakBothSendFirst(t *testing.T) {
	soak(t)
	const n = 256 << 20 / 8
	net := testnet.New(t, testnet.Config{Nodes: 2, Network: testnet.TCP})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := net.Run(func(g *ops.Group) error {
		me, other := uint64(g.Rank()), 1-g.Rank()
		x, y := make([]uint64, n), make([]uint64, n)
		numbered(x, me)
		send := g.Isend(t.Context(), tensor.Of(x), other, 0)
		if err := g.Barrier(t.Context()).Wait(); err != nil { // both are sending by now
			return err
		}
		recv := g.Irecv(t.Context(), tensor.Of(y), other, 0)
		if err := errors.Join(send.Wait(), recv.Wait()); err != nil {
			return err
		}
		return same(y, uint64(other))
	})
	if err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	const tensors = 4 * n * 8
	if more := int64(after.Sys-before.Sys) - tensors; more > 128<<20 {
		t.Errorf("took %d MiB beyond the tensors' %d MiB", more>>20, tensors>>20)
	} else {
		t.Logf("%d MiB beyond the tensors' %d MiB", more>>20, tensors>>20)
	}
}

// One message of 3 GiB, beyond what 32 bits count, arrives whole.
func TestSoakLongMessage(t *testing.T) {
	soak(t)
	const n = 3 << 30 / 8
	err := testnet.New(t, testnet.Config{Nodes: 2, Network: testnet.TCP}).Run(func(g *ops.Group) error {
		x := make([]uint64, n)
		if g.Rank() == 0 {
			numbered(x, 7)
			return g.Send(t.Context(), tensor.Of(x), 1, 0)
		}
		if err := g.Recv(t.Context(), tensor.Of(x), 0, 0); err != nil {
			return err
		}
		return same(x, 7)
	})
	if err != nil {
		t.Error(err)
	}
}
