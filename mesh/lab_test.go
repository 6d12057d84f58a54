package mesh_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/testnet/simlink"
)

// A lab is a mesh of real nodes on modelled links in virtual time, whose peers run
// what a training does, without the training: steps that need everyone, a count of
// those that are done, and the next world when one ends. It keeps a record and
// finds what must not be in it.
type lab struct {
	t     testing.TB
	net   *simlink.Network
	sites []*site
	c     mesh.Config

	mu       sync.Mutex // guards the rest
	begun    time.Time
	log      []string
	members  map[uint64]string      // by epoch
	finished map[int]map[uint64]int // by step and epoch: on how many ranks
	whole    int                    // the highest step that a whole world has finished
	last     uint64                 // in this epoch
	volatile bool                   // what a process has done dies with it
	mute     bool                   // nobody begins to train
}

// A site is a host, and the process on it if there is one.
type site struct {
	*lab
	i      int
	forget bool // it has no state file
	step   int  // on disk

	stop context.CancelFunc // nil: no process
	done chan struct{}
	mesh *mesh.Mesh

	in    *mesh.World // guarded by lab.mu, as is steps
	steps int         // finished in it
}

// labLink is a near network.
var labLink = simlink.Link{Latency: 500 * time.Microsecond, Jitter: 100 * time.Microsecond}

// newLab starts n processes that form one world. It must be closed.
func newLab(t testing.TB, seed uint64, n int, c mesh.Config) *lab {
	l := &lab{t: t, net: simlink.New(simlink.Config{Seed: seed, Link: labLink}), c: c, begun: time.Now(),
		members: make(map[uint64]string), finished: make(map[int]map[uint64]int)}
	l.c.World, l.c.Wait, l.c.Carries = n, 24*time.Hour, true
	dir := t.TempDir()
	for i := range n {
		l.c.Bootstrap = append(l.c.Bootstrap, l.net.Host(i).Addr())
		l.sites = append(l.sites, &site{lab: l, i: i})
	}
	l.c.Bootstrap = l.c.Bootstrap[:1] // one peer introduces all others, and may die
	l.c.State = dir
	return l
}

func (l *lab) startAll() {
	for _, s := range l.sites {
		s.start()
	}
}

func (l *lab) close() {
	for _, s := range l.sites {
		s.kill()
	}
	if err := l.net.Close(); err != nil {
		l.t.Error(err)
	}
}

func (l *lab) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%8.3f ", time.Since(l.begun).Seconds())+fmt.Sprintf(format, args...))
}

// wrong fails the test with the record so far. The lock is held.
func (l *lab) wrong(format string, args ...any) {
	l.t.Errorf(format+"\n%s", append(args, strings.Join(l.log, "\n"))...)
}

func (s *site) running() bool { return s.stop != nil }

// start is the start of the host's process.
func (s *site) start() {
	if s.running() {
		return
	}
	s.net.Restart(s.i)
	ctx, cancel := context.WithCancel(context.Background())
	n, err := node.Start(ctx, s.net.Host(s.i).Config())
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.c
	c.State = ""
	if !s.forget {
		c.State = filepath.Join(s.c.State, fmt.Sprint(s.i))
	}
	m, err := mesh.Join(ctx, n, c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.stop, s.done, s.mesh = cancel, make(chan struct{}), m
	s.mu.Lock()
	s.note("start %d (%s)", s.i, n.ID().String()[46:])
	s.mu.Unlock()
	go func() {
		defer close(s.done)
		s.live(ctx, m)
		if err := errors.Join(m.Close(), n.Close()); err != nil {
			s.t.Log(err)
		}
	}()
}

// kill is its death.
func (s *site) kill() {
	if !s.running() {
		return
	}
	s.mu.Lock()
	s.note("kill %d", s.i)
	s.in = nil
	s.mu.Unlock()
	s.net.Kill(s.i)
	s.stop()
	<-s.done
	s.stop = nil
	if s.forget || s.volatile {
		s.mu.Lock()
		s.step = 0
		s.mu.Unlock()
	}
}

// live is what a process does.
func (s *site) live(ctx context.Context, m *mesh.Mesh) {
	for ctx.Err() == nil {
		w, err := m.World(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.mu.Lock()
				s.wrong("peer %d gave up: %v", s.i, err)
				s.mu.Unlock()
			}
			return
		}
		s.enter(w)
		err = s.train(ctx, m, w)
		if ctx.Err() == nil && !errors.As(err, new(*mesh.EndedError)) {
			s.mu.Lock()
			s.wrong("peer %d: rank %d of world %d: %v", s.i, w.Rank(), w.Epoch(), err)
			s.mu.Unlock()
			return
		}
		s.leave(w, err)
	}
}

// train takes steps, each of which needs all ranks, until the world ends.
func (s *site) train(ctx context.Context, m *mesh.Mesh, w *mesh.World) error {
	defer context.AfterFunc(ctx, func() { w.End(ctx.Err()) })()
	s.mu.Lock()
	mute := s.mute
	s.mu.Unlock()
	if mute {
		<-w.Context().Done()
		return context.Cause(w.Context())
	}
	steps, err := exchange(ctx, w, s.step)
	if err != nil {
		return err
	}
	s.resume(w, slices.Max(steps))
	w.Carried()
	for {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-w.Context().Done():
			return context.Cause(w.Context())
		}
		if w.Rank() == 0 && len(m.Waiting()) > 0 {
			w.End(mesh.ErrGrow)
		}
		steps, err := exchange(ctx, w, s.step+1)
		if err != nil {
			return err
		}
		if s.finish(w, steps) > 1 {
			w.Advanced() // by this step all are known to have finished the one before
		}
	}
}

// exchange tells everyone a number, and returns everyone's.
func exchange(ctx context.Context, w *mesh.World, number int) ([]int, error) {
	all := make([]int, w.Size())
	all[w.Rank()] = number
	var tag [40]byte
	binary.LittleEndian.PutUint64(tag[:], uint64(number))
	for to := range all {
		if to != w.Rank() {
			if err := w.Send(ctx, to, 0, tag, 0, func(func([]byte, error) bool) {}); err != nil {
				return nil, err
			}
		}
	}
	for from := range all {
		if from != w.Rank() {
			accept := func(tag [40]byte, _ int64) error {
				all[from] = int(binary.LittleEndian.Uint64(tag[:]))
				return nil
			}
			if err := w.Recv(ctx, from, 0, accept, func([]byte) error { return nil }); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// all lists the hosts.
func (l *lab) all() (all []int) {
	for i := range l.sites {
		all = append(all, i)
	}
	return all
}
