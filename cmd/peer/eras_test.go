package main

import (
	"maps"
	"slices"
	"time"
)

// An era is what all peers have told of one world.
type era struct {
	number      int
	size        int
	members     map[string]bool // peer IDs of those that have told of it
	lowest      string          // rank 0's
	first, last time.Time       // sign of a step in it; zero: none
}

// progress reports whether an event shows that a step was taken, which takes all ranks
// of the world.
func (e told) progress() bool { return e.Event == "resumed" || e.Event == "epoch" }

// eras are the worlds that peers have told of, in order.
func (f *fleet) eras() []*era {
	all := make(map[int]*era)
	for i := range f.keys {
		var in *era // the world that the peer is in
		for _, e := range f.events(i) {
			switch {
			case e.Event == "world":
				if in = all[e.Epoch]; in == nil {
					in = &era{number: e.Epoch, size: e.Size, members: make(map[string]bool)}
					all[e.Epoch] = in
				}
				in.members[e.Peer] = true
				if e.Rank == 0 {
					in.lowest = e.Peer
				}
			case e.Event == "listening":
				in = nil // it has started again
			case e.progress() && in != nil:
				if in.first.IsZero() || e.at.Before(in.first) {
					in.first = e.at
				}
				if e.at.After(in.last) {
					in.last = e.at
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *era) int { return a.number - b.number })
}

// apart holds the worlds to what the quorum promises: a later one takes its first step
// after the last of an earlier one, and has more than half of the members of the one
// before that all were in, or half and its rank 0.
func (f *fleet) apart() {
	f.t.Helper()
	var before *era // the last in which a step was taken
	for _, w := range f.eras() {
		if w.first.IsZero() {
			continue
		}
		if len(w.members) != w.size {
			f.t.Errorf("a step was taken in world %d, of which %d of %d have told", w.number, len(w.members), w.size)
		}
		if b := before; b != nil {
			if w.first.Before(b.last) {
				f.t.Errorf("two worlds at once: %d had a step at %v, %d until %v", w.number, w.first, b.number, b.last)
			}
			kept := 0
			for id := range b.members {
				if w.members[id] {
					kept++
				}
			}
			if 2*kept < b.size || 2*kept == b.size && !w.members[b.lowest] {
				f.t.Errorf("world %d has %d members of the %d of world %d, and no right to go on", w.number, kept, b.size, b.number)
			}
		}
		before = w
	}
}
