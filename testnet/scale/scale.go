package scale

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

const (
	// Bytes is the length of the vector that a world reduces.
	Bytes = 1 << 20
	// latency is that of every two hosts: a network's of one building.
	latency = time.Millisecond
	// patience bounds the forming of a world, and what it computes, in virtual time.
	patience = 5 * time.Minute
	// algorithms have n log n moves: a ring's n² would be most of the work.
	algorithms = "all_reduce=halving,barrier=dissemination"
)

// A Row is what a world of some size took and holds. Counts are of all nodes together
// unless they say otherwise.
type Row struct {
	Nodes      int
	Conns      int           // connections, each counted once
	Streams    int           // streams, each counted once
	Goroutines int           // of the process
	Heap       int64         // bytes in use after a collection, with the world standing
	Membership int64         // bytes on the wire until the world stood
	Reduce     int64         // bytes on the wire for the barrier and the all_reduce
	Forming    time.Duration // virtual time until the world stood
	Reducing   time.Duration // virtual time of the barrier and the all_reduce
	CPU        time.Duration // of the whole process, from first node to last farewell
	FormCPU    time.Duration // of that, until the world stood
	Wall       time.Duration
	Peak       int64 // the most memory that the process has held so far, in bytes
}

// Measure has a world of real nodes form on modelled links, in virtual time, agree on
// ranks, wait for each other at a barrier and add up a vector of Bytes, whose sum every
// rank checks.
func Measure(nodes int) (r Row, err error) {
	began := time.Now() // inside it is virtual
	testnet.Virtual(func() { r, err = measure(nodes) })
	r.Wall = time.Since(began)
	return r, err
}

func measure(nodes int) (Row, error) {
	r := Row{Nodes: nodes}
	cpu, start := cpuTime(), time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	net, err := testnet.Start(ctx, testnet.Config{
		Nodes: nodes, Network: testnet.Model, Link: simlink.Link{Latency: latency},
		Mesh: mesh.Config{Wait: patience}, Ops: ops.Config{Algorithm: algorithms},
	})
	if err != nil {
		return r, fmt.Errorf("scale: a world of %d: %w", nodes, err)
	}
	r.Forming, r.FormCPU, r.Membership = time.Since(start), cpuTime()-cpu, carried(net)
	start = time.Now()
	err = net.Run(func(g *ops.Group) error { return compute(ctx, g) })
	r.Reducing, r.Reduce = time.Since(start), carried(net)-r.Membership
	r.count(net)
	if err == nil {
		err = net.Close()
	}
	r.CPU, r.Peak = cpuTime()-cpu, peak()
	if err != nil {
		return r, fmt.Errorf("scale: a world of %d: %w", nodes, err)
	}
	return r, nil
}

// compute is what every rank does.
func compute(ctx context.Context, g *ops.Group) error {
	if err := g.Barrier(ctx).Wait(); err != nil {
		return err
	}
	shared := vector()
	defer vectors.Put(shared)
	x, mine := *shared, float32(g.Rank())
	for i := range x {
		x[i] = mine
	}
	if err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil {
		return err
	}
	want := float32(g.Size() * (g.Size() - 1) / 2)
	for i, got := range x {
		if got != want {
			return fmt.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	return nil
}

var vectors sync.Pool

func vector() *[]float32 {
	if x, ok := vectors.Get().(*[]float32); ok {
		return x
	}
	x := make([]float32, Bytes/4)
	return &x
}

// count notes what the nodes hold.
func (r *Row) count(net *testnet.Net) {
	for i := range net.Size() {
		for _, c := range net.Node(i).Host().Network().Conns() {
			if c.Stat().Direction == network.DirOutbound {
				r.Conns++
			}
			for _, s := range c.GetStreams() {
				if s.Stat().Direction == network.DirOutbound {
					r.Streams++
				}
			}
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Heap, r.Goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
}

// carried is how many bytes the links have.
func carried(net *testnet.Net) (bytes int64) {
	for _, c := range net.Links().Counts() {
		bytes += c.Bytes
	}
	return bytes
}
