package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	golog "github.com/ipfs/go-log/v2"
	"go.uber.org/goleak"

	"peermesh/node"
	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	if os.Getenv("MESH_LOG") != "" {
		golog.SetLogLevel("mesh", "debug")
	}
	simlink.RememberSignatures() // of many nodes in one process
	debug.SetGCPercent(300)      // whose garbage is small
	goleak.VerifyTestMain(m)
}

// loopback is where test nodes listen.
const loopback = "/ip4/127.0.0.1/tcp/0"

func startNode(t testing.TB, listen string) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Listen: []string{listen}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func join(t testing.TB, n *node.Node, c Config) *Mesh {
	t.Helper()
	m, err := Join(t.Context(), n, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// A party is the processes of one test, by rank once a world has formed.
type party struct {
	nodes  []*node.Node
	meshes []*Mesh
	worlds []*World
}

// form brings up a world of n ranks.
func form(t testing.TB, n int, c Config) *party {
	return formOn(t, n, c, loopback)
}

func formOn(t testing.TB, n int, c Config, listen string) *party {
	t.Helper()
	c.World = n
	p := &party{nodes: make([]*node.Node, n), meshes: make([]*Mesh, n), worlds: make([]*World, n)}
	nodes, meshes := make([]*node.Node, n), make([]*Mesh, n)
	for i := range n {
		nodes[i] = startNode(t, listen)
		meshes[i] = join(t, nodes[i], c)
		c.Bootstrap = []string{nodes[0].Addrs()[0].String()}
	}
	worlds := worldsOf(t, meshes)
	for i, w := range worlds {
		p.nodes[w.Rank()], p.meshes[w.Rank()], p.worlds[w.Rank()] = nodes[i], meshes[i], w
	}
	return p
}

// worldsOf waits for the world of each mesh.
func worldsOf(t testing.TB, meshes []*Mesh) []*World {
	t.Helper()
	worlds := make([]*World, len(meshes))
	each(t, len(meshes), func(i int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var err error
		worlds[i], err = meshes[i].World(ctx)
		return err
	})
	return worlds
}

// each runs f for 0…n-1 at the same time, and fails the test with what they
// return.
func each(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestForm(t *testing.T) {
	for _, n := range []int{1, 2, 6} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			begin := time.Now()
			p := form(t, n, Config{Name: "test"})
			t.Log("formed in", time.Since(begin))
			for rank, w := range p.worlds {
				if w.Rank() != rank || w.Size() != n || w.Epoch() != 1 || w.Peer(rank) != p.nodes[rank].ID() {
					t.Errorf("rank %d: %d of %d in epoch %d, peer %s", rank, w.Rank(), w.Size(), w.Epoch(), w.Peer(rank))
				}
				for r := range n {
					if w.Peer(r) != p.worlds[0].Peer(r) {
						t.Errorf("rank %d and 0 differ on the peer of rank %d", rank, r)
					}
					if r > 0 && w.Peer(r-1).String() >= w.Peer(r).String() {
						t.Errorf("ranks %d and %d are not in the order of their IDs", r-1, r)
					}
				}
			}
		})
	}
}
