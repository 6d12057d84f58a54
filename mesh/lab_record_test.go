package mesh_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"peermesh/mesh"
)

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

// finish counts a step, checks that no two worlds finish it, and returns how many have
// been in this one.
func (s *site) finish(w *mesh.World, steps []int) int {
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
		return s.steps
	}
	if w.Epoch() < s.last || s.step <= s.whole {
		s.wrong("world %d finishes step %d, after world %d finished %d", w.Epoch(), s.step, s.last, s.whole)
	}
	s.whole, s.last = s.step, w.Epoch()
	delete(s.finished, s.step-4)
	return s.steps
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
