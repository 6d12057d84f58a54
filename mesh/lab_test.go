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
		s.finish(w, steps)
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

func roster(w *mesh.World) string {
	var all []string
	for r := range w.Size() {
		all = append(all, w.Peer(r).String()[46:])
	}
	return strings.Join(all, " ")
}

func (s *site) enter(w *mesh.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in, s.steps = w, 0
	s.note("peer %d is rank %d of world %d: %s", s.i, w.Rank(), w.Epoch(), roster(w))
	if was, ok := s.members[w.Epoch()]; ok && was != roster(w) {
		s.wrong("two worlds %d: %s and %s", w.Epoch(), was, roster(w))
	}
	s.members[w.Epoch()] = roster(w)
}

func (s *site) leave(w *mesh.World, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = nil
	s.note("peer %d, rank %d of world %d: %v", s.i, w.Rank(), w.Epoch(), err)
}

// resume checks that no step is lost which a whole world has finished, unless nobody
// lives any more who has it.
func (s *site) resume(w *mesh.World, step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = step
	if w.Epoch() <= s.last || step >= s.whole {
		return
	}
	if !s.volatile || slices.ContainsFunc(s.sites, func(o *site) bool { return o.step >= s.whole }) {
		s.wrong("world %d resumes at step %d, but %d was finished", w.Epoch(), step, s.whole)
	}
	s.note("world %d resumes at step %d, and nobody has step %d any more", w.Epoch(), step, s.whole)
	s.whole, s.last = step, w.Epoch()
	clear(s.finished)
}

// finish counts a step, and checks that no two worlds finish it.
func (s *site) finish(w *mesh.World, steps []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step++
	s.steps++
	if slices.ContainsFunc(steps, func(n int) bool { return n != s.step }) {
		s.wrong("world %d: steps %v", w.Epoch(), steps)
	}
	if s.finished[s.step] == nil {
		s.finished[s.step] = make(map[uint64]int)
	}
	if s.finished[s.step][w.Epoch()]++; s.finished[s.step][w.Epoch()] < w.Size() {
		return
	}
	if w.Epoch() < s.last || s.step <= s.whole {
		s.wrong("world %d finishes step %d, after world %d finished %d", w.Epoch(), s.step, s.last, s.whole)
	}
	s.whole, s.last = s.step, w.Epoch()
	delete(s.finished, s.step-4)
}

// agreed reports whether exactly these hosts are in one world, and have taken steps.
func (l *lab) agreed(hosts ...int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	epochs := make(map[uint64]bool)
	for i, s := range l.sites {
		in := s.in != nil && s.in.Context().Err() == nil && s.steps > 1
		if in != slices.Contains(hosts, i) {
			return false
		}
		if in {
			epochs[s.in.Epoch()] = true
			if s.in.Size() != len(hosts) {
				return false
			}
		}
	}
	return len(epochs) == 1
}

// await waits until hosts are in one world, at most so long.
func (l *lab) await(d time.Duration, hosts ...int) {
	l.t.Helper()
	begin := time.Now()
	for time.Since(begin) < d {
		if l.agreed(hosts...) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	reasons := make(map[int]string)
	for _, s := range l.sites {
		if s.running() {
			reasons[s.i] = s.reason()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong("%v are in no common world after %s: %v", hosts, d, reasons)
}

// reason is why a host has no world.
func (s *site) reason() string {
	s.mu.Lock()
	in := s.in
	s.mu.Unlock()
	if in != nil {
		return fmt.Sprintf("in world %d", in.Epoch())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.mesh.World(ctx)
	return fmt.Sprint(err)
}

// all lists the hosts.
func (l *lab) all() (all []int) {
	for i := range l.sites {
		all = append(all, i)
	}
	return all
}
