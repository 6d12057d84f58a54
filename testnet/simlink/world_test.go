package simlink_test

import (
	"context"
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
	net.Close()
}

func TestWorld(t *testing.T) {
	for range 3 {
		at := time.Now()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			world(t, 8, simlink.Config{Link: simlink.Link{Latency: time.Millisecond}})
			t.Log("virtual", time.Since(start))
		})
		t.Log("wall", time.Since(at))
	}
}
