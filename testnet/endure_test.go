package testnet_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

// endured is how many small operations are done: 100,000 in `make soak`.
func endured() int {
	if os.Getenv("PEERMESH_SOAK") != "" {
		return 100_000
	}
	return 4_000
}

// Small operations leave goroutines, streams, heap and file descriptors where they
// were after the first few, on real nodes: whatever each of them takes, it gives back.
func TestSoakSmallOperations(t *testing.T) {
	for _, network := range []testnet.Network{testnet.Memory, testnet.TCP, testnet.QUIC} {
		t.Run(string(network), func(t *testing.T) {
			net := testnet.New(t, testnet.Config{Nodes: 2, Network: network, Seed: 3})
			operate(t, net, 400)
			before := settled(t, net, usage{goroutines: 1 << 30, streams: 1 << 30, files: 1 << 30, heap: 1 << 40})
			operate(t, net, endured())
			after := settled(t, net, before)
			t.Logf("before %+v, after %+v", before, after)
			if !after.within(before) {
				t.Errorf("%d operations made of %+v %+v", endured(), before, after)
			}
		})
	}
}

// A usage is what operations could leak.
type usage struct{ goroutines, streams, files, heap int }

// within reports whether u is no more than was, but for what comes and goes by itself:
// heartbeats, timers, and buffers that pools keep.
func (u usage) within(was usage) bool {
	const goroutines, files, heap = 4, 2, 1 << 20
	return u.goroutines <= was.goroutines+goroutines && u.streams <= was.streams &&
		u.files <= was.files+files && u.heap <= was.heap+heap
}

// settled is the usage when what was only passing has passed: as soon as it is within
// bounds, or after some seconds.
func settled(t *testing.T, net *testnet.Net, bounds usage) (now usage) {
	t.Helper()
	for range 50 {
		if now = used(t, net); now.within(bounds) {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	return now
}

func used(t *testing.T, net *testnet.Net) (u usage) {
	t.Helper()
	debug.FreeOSMemory() // a collection, of what pools keep too at the second
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.goroutines, u.heap = runtime.NumGoroutine(), int(m.HeapAlloc)
	for i := range net.Size() {
		for _, c := range net.Node(i).Host().Network().Conns() {
			u.streams += len(c.GetStreams())
		}
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil { // where there is such a thing
		u.files = len(files)
	}
	return u
}

// operate does that many operations, eight in flight at a time, each on fewer than a
// hundred bytes.
func operate(t *testing.T, net *testnet.Net, operations int) {
	t.Helper()
	ctx := t.Context()
	err := net.Run(func(g *ops.Group) error {
		x, out := tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 6)
		a, b, c := tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 3)
		other := 1 - g.Rank()
		for i := range operations / 8 {
			works := []*ops.Work{
				g.AllReduce(ctx, x, tensor.Max), g.Broadcast(ctx, x, i%2), g.Barrier(ctx), g.AllGather(ctx, out, x),
				g.Isend(ctx, a, other, 1), g.Irecv(ctx, b, other, 1),
				g.Isend(ctx, a, other, 2), g.IrecvAny(ctx, c, 2),
			}
			for k, w := range works {
				if err := w.Wait(); err != nil {
					return fmt.Errorf("round %d, operation %d: %w", i, k, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
