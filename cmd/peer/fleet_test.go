package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A fleet is peers with identities and addresses of their own, who are started,
// lost and started again: what a run on machines that nobody controls is made of.
type fleet struct {
	t     *testing.T
	flags []string
	ids   []string // peer IDs
	keys  []string
	addrs []string
	// command makes that of a peer: peerCommand, or one that runs somewhere else.
	command func(i int, args ...string) *exec.Cmd

	lives [][]*spawned // of each peer, the present one last
	heard map[*spawned]*heard
	down  []bool // killed, not started again
	still []bool // stopped
}

// manyEpochs is for --epochs: so many that a run ends only when it is interrupted.
const manyEpochs = "1000000000"

// newFleet gives n peers keys and ports.
func newFleet(t *testing.T, n int, flags ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, flags: flags, lives: make([][]*spawned, n), down: make([]bool, n), still: make([]bool, n), heard: map[*spawned]*heard{}}
	f.command = func(_ int, args ...string) *exec.Cmd { return peerCommand(t, args...) }
	dir := t.TempDir()
	for i := range n {
		f.keys = append(f.keys, filepath.Join(dir, fmt.Sprint("key", i)))
		status, id, stderr := in("id", "--identity", f.keys[i])
		if status != 0 {
			t.Fatal(stderr)
		}
		f.ids = append(f.ids, strings.TrimSpace(id))
		f.addrs = append(f.addrs, "/ip4/127.0.0.1/tcp/"+strconv.Itoa(freePort(t)))
	}
	return f
}

// freePort is one that nobody listened on a moment ago. The kernel gives none from
// here to connections that go out, which could otherwise take it before its listener
// does, or even meet themselves there.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// start starts a peer, for the first time or again. Any other introduces it, so that
// no peer is one that must live.
func (f *fleet) start(i int) {
	f.t.Helper()
	args := []string{"--world", strconv.Itoa(len(f.keys)), "--identity", f.keys[i], "--listen", f.addrs[i], "--log", "json"}
	for j := range f.keys {
		if j != i {
			args = append(args, "--bootstrap", f.addrs[j]+"/p2p/"+f.ids[j])
		}
	}
	f.lives[i] = append(f.lives[i], watched(f.t, f.command(i, append(args, f.flags...)...)))
	f.down[i] = false
}

// startAll starts every peer.
func (f *fleet) startAll() {
	f.t.Helper()
	for i := range f.keys {
		f.start(i)
	}
}

func (f *fleet) now(i int) *spawned { return f.lives[i][len(f.lives[i])-1] }

// kill ends a peer as a power failure would.
func (f *fleet) kill(i int) time.Time {
	f.t.Helper()
	at := time.Now()
	f.now(i).signal(f.t, syscall.SIGKILL)
	<-f.now(i).ended
	f.down[i], f.still[i] = true, false
	return at
}

// freeze stops a peer, and thaw lets it go on.
func (f *fleet) freeze(i int) {
	f.now(i).signal(f.t, syscall.SIGSTOP)
	f.still[i] = true
}

func (f *fleet) thaw(i int) {
	f.now(i).signal(f.t, syscall.SIGCONT)
	f.still[i] = false
}

// ended reports whether a peer's process is over.
func (f *fleet) ended(i int) bool {
	select {
	case <-f.now(i).ended:
		return true
	default:
		return false
	}
}

// A told is an event, and who has told it when.
type told struct {
	event
	by int
	at time.Time
}

// events are all that a peer has told in all its lives, in order.
func (f *fleet) events(i int) (all []told) { return f.lived(i, f.lives[i]) }

// present are those of its present life.
func (f *fleet) present(i int) []told { return f.lived(i, f.lives[i][len(f.lives[i])-1:]) }

func (f *fleet) lived(i int, lives []*spawned) (all []told) {
	for _, life := range lives {
		h := f.heard[life]
		if h == nil {
			h = new(heard)
			f.heard[life] = h
		}
		all = append(all, h.on(f.t, i, life.out())...)
	}
	return all
}

// heard is what has been read of what a life prints: a run of minutes is asked for it
// again and again.
type heard struct {
	size int // bytes
	told []told
}

// on reads on, to the end of the last line that is whole.
func (h *heard) on(t *testing.T, i int, text string) []told {
	end := strings.LastIndexByte(text, '\n') + 1
	for line := range strings.Lines(text[h.size:end]) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("peer %d prints %q: %v", i, line, err)
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			t.Errorf("peer %d: %v", i, err)
		}
		h.told = append(h.told, told{e, i, at})
	}
	h.size = end
	return h.told
}

// all are the events of all peers, in the order of their clock.
func (f *fleet) all() (all []told) {
	for i := range f.lives {
		all = append(all, f.events(i)...)
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.at.Compare(b.at) })
	return all
}

// length is how many epochs last as long as that, by a short run.
func (f *fleet) length(lasting time.Duration) int {
	f.t.Helper()
	f.flags = append(slices.Clone(f.flags), "--epochs", "2")
	f.startAll()
	f.finish(2 * soon)
	var last float64 // as the first one has the start in it
	for _, e := range f.events(0) {
		if e.Event == "epoch" {
			last = float64(*e.Seconds)
		}
	}
	return max(4, int(lasting.Seconds()/last))
}

// finish waits until all have come to the end, and well.
func (f *fleet) finish(bound time.Duration) {
	f.t.Helper()
	for i := range f.keys {
		inTime(f.t, bound, fmt.Sprintf("the end of peer %d", i), func() bool { return f.ended(i) })
		if status := f.now(i).status; status != 0 {
			f.t.Errorf("peer %d ends with status %d", i, status)
		}
		if !f.has(i, func(e told) bool { return e.Event == "done" }) {
			f.t.Errorf("peer %d ends before the run does", i)
		}
	}
}

// train waits until every peer has told of an epoch that ended after a time.
func (f *fleet) train(when string, after time.Time) {
	f.t.Helper()
	inTime(f.t, soon, "an epoch of every peer, "+when, func() bool {
		return f.everyone(func(e told) bool { return e.Event == "epoch" && e.at.After(after) })
	})
}

// interrupt ends all peers as their users would, together.
func (f *fleet) interrupt() {
	f.t.Helper()
	for i := range f.keys {
		f.now(i).signal(f.t, syscall.SIGINT)
	}
	for i := range f.keys {
		if status, want := f.now(i).wait(f.t), 128+int(syscall.SIGINT); status != want {
			f.t.Errorf("peer %d, interrupted, ends with status %d, want %d", i, status, want)
		}
	}
}

// last is the latest epoch that any peer has told the end of.
func (f *fleet) last() (last int) {
	for _, e := range f.all() {
		if e.Event == "epoch" {
			last = max(last, e.Epoch)
		}
	}
	return last
}

// everyone reports whether each peer has told of something.
func (f *fleet) everyone(what func(e told) bool) bool {
	for i := range f.keys {
		if !f.has(i, what) {
			return false
		}
	}
	return true
}

// has reports whether a peer has told of something.
func (f *fleet) has(i int, what func(e told) bool) bool {
	return slices.ContainsFunc(f.events(i), what)
}

// inTime waits for a condition for longer than most tests do.
func inTime(t *testing.T, bound time.Duration, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

// audit holds what all peers have told to what may be told: one world at a time, all
// ranks alike at the end of each epoch and of the run, and each of n samples counted
// once in each epoch from the first to the last.
func (f *fleet) audit(n, first, last int) {
	f.t.Helper()
	book := newLedger()
	for s := range n {
		book.epoch[ledgerMarks] += mark(s)
	}
	hashes, members := make(map[int]string), make(map[[2]int]string)
	sizes, done := make(map[int]int), ""
	for _, e := range f.all() {
		switch e.Event {
		case "world":
			at := [2]int{e.Epoch, e.Rank}
			if who, taken := members[at]; taken && who != e.Peer {
				f.t.Errorf("in world %d rank %d is %s and %s", e.Epoch, e.Rank, who, e.Peer)
			}
			if size, known := sizes[e.Epoch]; known && size != e.Size {
				f.t.Errorf("world %d is one of %d and one of %d", e.Epoch, size, e.Size)
			}
			members[at], sizes[e.Epoch] = e.Peer, e.Size
		case "epoch":
			if hash, known := hashes[e.Epoch]; known && hash != e.ParamsHash {
				f.t.Errorf("after epoch %d peer %d has parameters %.16s, another %.16s", e.Epoch, e.by, e.ParamsHash, hash)
			}
			if e.Samples != n || e.SamplesSum != book.epoch[ledgerMarks] {
				f.t.Errorf("in epoch %d peer %d counts %d samples, of sum %v; want each of %d once", e.Epoch, e.by, e.Samples, e.SamplesSum, n)
			}
			hashes[e.Epoch] = e.ParamsHash
		case "done":
			if done != "" && done != e.ParamsHash {
				f.t.Errorf("peer %d ends with parameters %.16s, another with %.16s", e.by, e.ParamsHash, done)
			}
			done = e.ParamsHash
		}
	}
	for epoch := first; epoch <= last; epoch++ {
		if hashes[epoch] == "" {
			f.t.Errorf("nobody has told of the end of epoch %d", epoch)
		}
	}
}

// accuracy is what those that came to the end found.
func (f *fleet) accuracy() (accuracy float64) {
	for _, e := range f.all() {
		if e.Event == "done" {
			accuracy = float64(*e.Accuracy)
		}
	}
	return accuracy
}
