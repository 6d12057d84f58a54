// Package ranks runs the ranks of an example in one process: libp2p nodes, each with
// a part in the mesh, as they would be on machines of their own. See
// examples/allreduce for a rank that is a process.
//
//	err := ranks.Run(ctx, 2, func(ctx context.Context, g *ops.Group) error { … })
package ranks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
)

// A member is a node and its part in the mesh.
type member struct {
	node *node.Node
	mesh *mesh.Mesh
}

// Run forms a world of n ranks, from 1 to mesh.MaxWorld, calls each for every one of
// them, on a goroutine of its own, and takes the world apart when all have returned.
// The context that each gets ends with the world, and an error of one rank ends it.
func Run(ctx context.Context, n int, each func(ctx context.Context, g *ops.Group) error) error {
	if n < 1 || n > mesh.MaxWorld {
		return fmt.Errorf("ranks: %d ranks, want 1 to %d", n, mesh.MaxWorld)
	}
	members := make([]member, n)
	defer func() {
		for _, m := range members {
			m.close()
		}
	}()
	var bootstrap []string
	for i := range members {
		m := &members[i]
		var err error
		if m.node, err = node.Start(ctx, node.Config{Transports: []string{node.Memory}}); err != nil {
			return err
		}
		c := mesh.Config{Name: "example", World: n, Bootstrap: bootstrap}
		if m.mesh, err = mesh.Join(ctx, m.node, c); err != nil {
			return err
		}
		if i == 0 {
			bootstrap = []string{m.node.Addrs()[0].String()}
		}
	}
	// Nobody begins before all are in: a world that one has ended is no longer there for
	// those who have yet to ask for it, and they would wait for another.
	worlds := make([]*mesh.World, n)
	err := together(n, func(i int) (err error) {
		worlds[i], err = members[i].mesh.World(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return together(n, func(i int) error {
		if err := In(ctx, worlds[i], each); err != nil {
			return fmt.Errorf("rank %d: %w", worlds[i].Rank(), err)
		}
		return nil
	})
}

// together calls f with each number below n, on a goroutine of its own, and returns all
// their errors.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// In calls each for this process's rank of a world, as Run does for every one of them.
func In(ctx context.Context, w *mesh.World, each func(ctx context.Context, g *ops.Group) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.Context(), func() { cancel(context.Cause(w.Context())) })()
	err := each(within, ops.NewGroup(w, ops.Config{}))
	if err != nil {
		w.End(err)
	}
	return err
}

// close is for members that nobody waits for any more.
func (m member) close() {
	if m.mesh != nil {
		m.mesh.Close()
	}
	if m.node != nil {
		m.node.Close()
	}
}
