package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"peermesh/node"
)

// pause waits for a time that decides at which moment of a forming world
// something happens; nothing depends on how long it really was.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// moments of the first tenth of a second, in which a small world forms.
var moments = []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond}

// Close is safe at any moment, frees those who wait, and leaves nothing behind.
func TestCloseAtAnyMoment(t *testing.T) {
	const n = 3
	for _, moment := range moments {
		t.Run(moment.String(), func(t *testing.T) {
			var meshes []*Mesh
			var nodes []*node.Node
			c := Config{World: n}
			for range n {
				nodes = append(nodes, startNode(t, loopback))
				meshes = append(meshes, join(t, nodes[len(nodes)-1], c))
				c.Bootstrap = []string{nodes[0].Addrs()[0].String()}
			}
			each(t, 2*n, func(i int) error {
				m := meshes[i%n]
				if i < n {
					w, err := m.World(t.Context())
					if err == nil {
						<-w.Context().Done()
						err = context.Cause(w.Context())
					}
					if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrLost) && !errors.Is(err, ErrAbsent) {
						return fmt.Errorf("peer %d: %w", i, err)
					}
					return nil
				}
				pause(t, moment+time.Duration(i-n)*time.Millisecond)
				return m.Close()
			})
		})
	}
}

// Leave is, too.
func TestLeaveAtAnyMoment(t *testing.T) {
	for _, moment := range moments {
		t.Run(moment.String(), func(t *testing.T) {
			a, b := startNode(t, loopback), startNode(t, loopback)
			meshes := []*Mesh{
				join(t, a, Config{World: 2}),
				join(t, b, Config{World: 2, Bootstrap: []string{a.Addrs()[0].String()}}),
			}
			each(t, 2, func(i int) error {
				pause(t, moment)
				err := meshes[i].Leave(t.Context())
				if errors.As(err, new(*EndedError)) {
					return nil // the other left while the world was linking up
				}
				return err
			})
		})
	}
}

// converge asks for worlds until one stands in which everyone hears everyone.
func converge(ctx context.Context, m *Mesh) (*World, error) {
	for {
		w, err := m.World(ctx)
		if err != nil {
			return nil, err
		}
		if hearAll(ctx, w) == nil {
			return w, nil
		}
		<-w.Context().Done()
	}
}

func hearAll(ctx context.Context, w *World) error {
	for to := range w.Size() {
		if to != w.Rank() {
			if err := w.Send(ctx, to, 0, tagged(w.Epoch()), 0, one(nil)); err != nil {
				return err
			}
		}
	}
	for from := range w.Size() {
		if from != w.Rank() {
			if _, _, err := take(ctx, w, from, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// A peer dies at some moment of the forming, and another comes in its place: the
// others and the new one end in one and the same world.
func TestDeathWhileForming(t *testing.T) {
	const n = 3
	for _, moment := range moments {
		for victim := range 2 { // the bootstrap peer, and another
			t.Run(fmt.Sprintf("%s/%d", moment, victim), func(t *testing.T) {
				nodes := []*node.Node{startNode(t, loopback), startNode(t, loopback)}
				boot := []string{nodes[0].Addrs()[0].String(), nodes[1].Addrs()[0].String()}
				meshes := make([]*Mesh, n+1)
				meshes[0] = join(t, nodes[0], Config{World: n, Bootstrap: boot})
				meshes[1] = join(t, nodes[1], Config{World: n, Bootstrap: boot})
				meshes[2] = join(t, startNode(t, loopback), Config{World: n, Bootstrap: boot})
				worlds := make([]*World, n+1)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				each(t, n+1, func(i int) error {
					switch i {
					case victim:
						pause(t, moment)
						return nodes[victim].Close()
					case n:
						pause(t, moment+5*time.Millisecond)
						return comeLate(ctx, t, n, boot, &worlds[n])
					}
					var err error
					worlds[i], err = converge(ctx, meshes[i])
					return err
				})
				for i, w := range worlds {
					if i != victim && w.roster.Digest != worlds[n].roster.Digest {
						t.Errorf("peer %d is in world %d of %s", i, w.Epoch(), names(w.roster.Members))
					}
				}
			})
		}
	}
}

// comeLate joins until it is not refused: the world that has just lost a member
// may not know that yet.
func comeLate(ctx context.Context, t *testing.T, size int, boot []string, w **World) error {
	for {
		n, err := node.Start(ctx, node.Config{Listen: []string{loopback}})
		if err != nil {
			return err
		}
		m, err := Join(ctx, n, Config{World: size, Bootstrap: boot})
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := errors.Join(m.Close(), n.Close()); err != nil {
				t.Error(err)
			}
		})
		if *w, err = converge(ctx, m); !errors.As(err, new(*RefusedError)) {
			return err
		}
	}
}

// A rank is killed while all send to all: everyone else's calls end with its
// name, whatever they were doing.
func TestKillInTraffic(t *testing.T) {
	const n = 3
	for seed := range uint64(3) {
		p := form(t, n, Config{})
		rng := rand.New(rand.NewPCG(seed, 1))
		victim, moment := rng.IntN(n), time.Duration(rng.IntN(20))*time.Millisecond
		data := noise(200_000)
		each(t, n*n, func(i int) error {
			from, to := i/n, i%n
			if from == to {
				if from == victim {
					pause(t, moment)
					return p.nodes[victim].Close()
				}
				return nil
			}
			ends := make(chan error, 2)
			go func() {
				var err error
				for err == nil {
					err = p.worlds[from].Send(t.Context(), to, 1, tagged(0), int64(len(data)), whole(data))
				}
				ends <- err
			}()
			go func() {
				var err error
				for err == nil {
					_, _, err = take(t.Context(), p.worlds[to], from, 1)
				}
				ends <- err
			}()
			for range 2 {
				var e *EndedError
				if err := <-ends; !errors.As(err, &e) || e.Rank != victim {
					return fmt.Errorf("seed %d, %d→%d: rank %d was killed: %w", seed, from, to, victim, err)
				}
			}
			return nil
		})
	}
}
