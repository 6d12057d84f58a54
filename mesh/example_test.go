package mesh_test

import (
	"context"
	"fmt"
	"sync"

	"peermesh/mesh"
	"peermesh/node"
)

// Two peers of one process form a world, and rank 0 greets rank 1.
func Example() {
	ctx := context.Background()
	first := start(ctx)
	second := start(ctx, first.Addrs()[0].String()) // the address that first would print

	var wg sync.WaitGroup
	for _, p := range []*peer{first, second} {
		wg.Go(func() {
			defer p.Close()
			w, err := p.mesh.World(ctx)
			if err != nil {
				panic(err)
			}
			greet(ctx, w)
			if err := p.mesh.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output: rank 1 of 2 got "hello" on lane 7
}

func greet(ctx context.Context, w *mesh.World) {
	const lane = 7
	var tag [40]byte // what it means is up to the two ends
	if w.Rank() == 0 {
		text := []byte("hello")
		parts := func(yield func([]byte, error) bool) { yield(text, nil) }
		if err := w.Send(ctx, 1, lane, tag, int64(len(text)), parts); err != nil {
			panic(err)
		}
		return
	}
	var got []byte
	accept := func(tag [40]byte, n int64) error { return nil }
	land := func(p []byte) error { got = append(got, p...); return nil }
	if err := w.Recv(ctx, 0, lane, accept, land); err != nil {
		panic(err)
	}
	fmt.Printf("rank %d of %d got %q on lane %d\n", w.Rank(), w.Size(), got, lane)
}

type peer struct {
	*node.Node
	mesh *mesh.Mesh
}

func start(ctx context.Context, bootstrap ...string) *peer {
	n, err := node.Start(ctx, node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		panic(err)
	}
	m, err := mesh.Join(ctx, n, mesh.Config{Name: "example", World: 2, Bootstrap: bootstrap})
	if err != nil {
		panic(err)
	}
	return &peer{n, m}
}
