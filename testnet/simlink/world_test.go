package simlink_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/simlink"
)

// world forms one of n nodes, sums over it, and takes it down.
func world(t testing.TB, n int, c simlink.Config) {
	net := simlink.New(c)
	nodes := make([]*node.Node, n)
	meshes := make([]*mesh.Mesh, n)
	for i := range n {
		nd, err := node.Start(t.Context(), net.Host(i).Config())
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = nd
		m, err := mesh.Join(t.Context(), nd, mesh.Config{World: n, Bootstrap: []string{net.Host(0).Addr()}})
		if err != nil {
			t.Fatal(err)
		}
		meshes[i] = m
	}
	var wg sync.WaitGroup
	for _, m := range meshes {
		wg.Go(func() {
			w, err := m.World(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			g := ops.NewGroup(w, ops.Config{})
			x := []float32{1}
			if err := g.AllReduce(t.Context(), tensor.Of(x), tensor.Sum).Wait(); err != nil || x[0] != float32(n) {
				t.Error(err, x)
			}
		})
	}
	wg.Wait()
	for _, m := range meshes {
		wg.Go(func() {
			if err := m.Leave(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, n := range nodes {
		wg.Go(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := net.Close(); err != nil {
		t.Error(err)
	}
}

// A world forms, computes and closes. PEERMESH_WORLDS says how many do, for
// `make worlds`: first as many at once as there are processors, and then alone, as many
// of them as tell what one takes in a process that has its memory. The first few of a
// process take several times as long, which is page faults.
func TestWorlds(t *testing.T) {
	n := 3
	if s := os.Getenv("PEERMESH_WORLDS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	one := func(t *testing.T, i int) time.Duration {
		start := time.Now()
		synctest.Test(t, func(t *testing.T) {
			world(t, 8, simlink.Config{Seed: uint64(i), Link: simlink.Link{Latency: time.Millisecond}})
		})
		return time.Since(start)
	}
	start, next := time.Now(), make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	t.Run("at once", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := range next {
					one(t, i)
				}
			})
		}
	})
	t.Logf("%d worlds of 8 in %v", n, time.Since(start))
	var alone []time.Duration
	for i := range max(n/10, 1) {
		alone = append(alone, one(t, i))
	}
	slices.Sort(alone)
	t.Logf("a world of 8 takes %v, the median of %d", alone[len(alone)/2], len(alone))
}
