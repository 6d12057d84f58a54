package trainer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
)

// save has n ranks save one state; dir and fs are by rank.
func save(n int, state func(rank int) *State, at func(rank int) *Checkpoints) []error {
	return each(memnet.New(n), func(rank int, w *memnet.World) error {
		return at(rank).Save(context.Background(), ops.NewGroup(w, ops.Config{}), state(rank))
	})
}

// load has n ranks load into states that know nothing.
func load(n int, parts int, at func(rank int) *Checkpoints) ([]*State, []error) {
	states := make([]*State, n)
	errs := each(memnet.New(n), func(rank int, w *memnet.World) error {
		states[rank] = bulky(uint64(100+rank), Progress{}, parts)
		return at(rank).Load(context.Background(), ops.NewGroup(w, ops.Config{}), states[rank])
	})
	return states, errs
}

func alike(s *State) func(int) *State { return func(int) *State { return s } }

// Whoever has saved, whoever loads, in one directory or in each rank's own.
func TestCheckpoints(t *testing.T) {
	for _, c := range []struct {
		savers, loaders, parts int
		shared                 bool
	}{{1, 1, 0, true}, {3, 2, 3, true}, {2, 4, 0, true}, {4, 1, 0, true}, {2, 3, 3, false}, {2, 4, 0, false}} {
		root := t.TempDir()
		at := func(rank int) *Checkpoints {
			if c.shared {
				return &Checkpoints{Dir: root}
			}
			return &Checkpoints{Dir: filepath.Join(root, string(rune('a'+rank)))}
		}
		var last *State
		for step := int64(1); step <= 2; step++ {
			last = bulky(uint64(step), Progress{Step: step, Epoch: 1, Consumed: 5}, c.parts)
			noErrors(t, save(c.savers, alike(last), at))
		}
		states, errs := load(c.loaders, c.parts, at)
		noErrors(t, errs)
		for r, s := range states {
			if labelOf(t, s) != labelOf(t, last) || s.Progress != last.Progress {
				t.Errorf("%+v: rank %d has something else, at %v", c, r, s.Progress)
			}
		}
		list, err := at(0).List()
		if err != nil || len(list) != 2 || list[0].Step != 2 || list[0].Ranks != c.savers {
			t.Errorf("%+v: %+v, %v", c, list, err)
		}
	}
}

func TestCheckpointsKeep(t *testing.T) {
	root := t.TempDir()
	c := &Checkpoints{Dir: root, Keep: 2}
	stray := filepath.Join(root, dirName(Progress{Step: 1, Epoch: 7})) // of a save that did not end
	other := filepath.Join(root, "notes.txt")
	for _, err := range []error{
		os.MkdirAll(stray, 0o777), os.WriteFile(filepath.Join(stray, "shard-00000-of-00002"), []byte("x"), 0o666),
		os.WriteFile(other, nil, 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for step := int64(1); step <= 5; step++ {
		noErrors(t, save(2, alike(bulky(1, Progress{Step: step}, 0)), func(int) *Checkpoints { return c }))
	}
	names, err := disk{}.ReadDir(root)
	if want := "notes.txt step-000000000004-epoch-000000 step-000000000005-epoch-000000"; err != nil || strings.Join(names, " ") != want {
		t.Errorf("left: %v, %v", names, err)
	}
	if last, err := c.Latest(); err != nil || last.Step != 5 {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestNoCheckpoint(t *testing.T) {
	c := &Checkpoints{Dir: filepath.Join(t.TempDir(), "nowhere")}
	_, errs := load(2, 1, func(int) *Checkpoints { return c })
	_, err := c.Latest()
	for _, err := range append(errs, err) {
		if !errors.Is(err, ErrNoCheckpoint) {
			t.Error(err)
		}
	}
}

// A full disk on one rank is an error on all, and the last checkpoint stays good.
func TestCheckpointFullDisk(t *testing.T) {
	first, second := bulky(1, Progress{Step: 1}, 0), bulky(2, Progress{Step: 2}, 0)
	failed := 0
	for space, done := 0, false; !done; space += 100 {
		disks := []*frail{newFrail(), newFrail()}
		at := func(rank int) *Checkpoints { return &Checkpoints{Dir: "/c", files: disks[rank]} }
		noErrors(t, save(2, alike(first), at))
		disks[1].space = space
		errs := save(2, alike(second), at)
		want := second
		if done = errs[1] == nil; !done {
			failed++
			want = first
			if e, ok := errors.AsType[*CheckpointError](errs[0]); !ok || e.Rank != 1 || !strings.Contains(e.Reason, "no space left") {
				t.Errorf("%d bytes: rank 0: %v", space, errs[0])
			}
			if !errors.Is(errs[1], errFull) || !strings.Contains(errs[1].Error(), "/c/step-000000000002-epoch-000000/") {
				t.Errorf("%d bytes: rank 1: %v", space, errs[1])
			}
			for name := range disks[1].now {
				if strings.Contains(name, "/.") {
					t.Errorf("%d bytes: %s is left", space, name)
				}
			}
		}
		states, errs := load(2, 0, at)
		noErrors(t, errs)
		got := labelOf(t, states[1])
		// When the space was for the shard and not for the manifest, rank 0 has one.
		if got != labelOf(t, want) && (done || got != labelOf(t, second)) {
			t.Errorf("%d bytes: loaded %v", space, states[1].Progress)
		}
	}
	if failed < 3 {
		t.Errorf("only %d disks were too small", failed)
	}
}

// Power fails at any call to the disk of one rank or of all: what is loaded then is
// one of the two states, whole.
func TestCheckpointPowerLoss(t *testing.T) {
	first, second := bulky(1, Progress{Step: 1}, 0), bulky(2, Progress{Step: 2}, 0)
	one, two := labelOf(t, first), labelOf(t, second)
	for _, shared := range []bool{true, false} {
		ended := 0
		for k, done := 1, false; !done; k++ {
			disks := []*frail{newFrail(), newFrail()}
			if shared {
				disks[1] = disks[0]
			}
			at := func(rank int) *Checkpoints { return &Checkpoints{Dir: "/c", Keep: 1, files: disks[rank]} }
			noErrors(t, save(2, alike(first), at))
			disks[0].outAt = disks[0].calls + k
			errs := save(2, alike(second), at)
			done = errors.Join(errs...) == nil
			disks[0].reboot()
			disks[1].outAt = 0
			states, errs := load(2, 0, at)
			noErrors(t, errs)
			for r, s := range states {
				got := labelOf(t, s)
				if got != one && got != two || got != labelOf(t, states[0]) {
					t.Errorf("power fails at call %d: rank %d has %v", k, r, s.Progress)
				}
				if got == two {
					ended++
				}
			}
			if done && labelOf(t, states[0]) != two {
				t.Error("a save that ended well is lost")
			}
		}
		if ended < 2 {
			t.Errorf("only %d loads found the second state", ended)
		}
	}
}

// What is damaged on one disk is read from another, or an older state is.
func TestCheckpointDamage(t *testing.T) {
	const dir = "/c/step-000000000002-epoch-000000/"
	first, second := bulky(1, Progress{Step: 1}, 0), bulky(2, Progress{Step: 2}, 0)
	flip := func(at int) func(f *frailFile) {
		return func(f *frailFile) { f.data[at] ^= 1 }
	}
	for name, c := range map[string]struct {
		file   string
		damage func(f *frailFile)
		want   *State
	}{
		"a bit of a part":    {"shard-00001-of-00002", flip(shardHeader + 9), first},
		"cut short":          {"shard-00001-of-00002", func(f *frailFile) { f.data = f.data[:99] }, first},
		"empty":              {"shard-00001-of-00002", func(f *frailFile) { f.data = nil }, first},
		"of another state":   {"shard-00001-of-00002", flip(20), first},
		"of another version": {"shard-00001-of-00002", flip(4), first},
		"the manifest":       {"manifest", flip(50), first},
	} {
		fs := newFrail()
		at := func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: fs} }
		noErrors(t, save(2, alike(first), at))
		noErrors(t, save(2, alike(second), at))
		c.damage(fs.now[dir+c.file])
		states, errs := load(3, 0, at)
		noErrors(t, errs)
		for r, s := range states {
			if labelOf(t, s) != labelOf(t, c.want) {
				t.Errorf("%s: rank %d is at %v", name, r, s.Progress)
			}
		}
		// Another rank has it whole.
		good := newFrail()
		noErrors(t, save(2, alike(first), func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: good} }))
		noErrors(t, save(2, alike(second), func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: good} }))
		states, errs = load(2, 0, func(rank int) *Checkpoints {
			return &Checkpoints{Dir: "/c", files: []*frail{fs, good}[rank]}
		})
		noErrors(t, errs)
		for r, s := range states {
			if labelOf(t, s) != labelOf(t, second) {
				t.Errorf("%s: with a good copy rank %d is at %v", name, r, s.Progress)
			}
		}
	}
}

// With nothing left to load, every rank hears what was wrong.
func TestCheckpointUnusable(t *testing.T) {
	fs := newFrail()
	at := func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: fs} }
	noErrors(t, save(2, alike(bulky(1, Progress{Step: 1}, 0)), at))
	fs.now["/c/step-000000000001-epoch-000000/shard-00001-of-00002"].data[shardHeader] ^= 1
	disks := []*frail{newFrail(), fs}
	_, errs := load(2, 0, func(rank int) *Checkpoints { return &Checkpoints{Dir: "/c", files: disks[rank]} })
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "no rank has 1 of the 1 parts") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if !strings.Contains(errs[1].Error(), "part 0 of 1 has the hash") {
		t.Errorf("rank 1: %v", errs[1])
	}
	if _, errs = load(2, 1, at); errs[0] == nil || !strings.Contains(errs[0].Error(), "want \"big\"") {
		t.Errorf("of another model: %v", errs[0])
	}
}

func TestCheckpointRefusesDiverged(t *testing.T) {
	fs := newFrail()
	errs := save(2, func(rank int) *State { return bulky(uint64(rank), Progress{Step: 3}, 0) },
		func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: fs} })
	for _, err := range errs {
		if _, ok := errors.AsType[*DivergedError](err); !ok {
			t.Error(err)
		}
	}
	errs = save(2, func(rank int) *State { return bulky(1, Progress{Step: int64(rank)}, 0) },
		func(int) *Checkpoints { return &Checkpoints{Dir: "/c", files: fs} })
	if errs[0] == nil || errs[1] == nil || len(fs.now) > 0 {
		t.Error(errs, len(fs.now))
	}
}

// The manifest, byte by byte.
func TestManifestBytes(t *testing.T) {
	h := head{Progress: Progress{Step: 1}, tensors: []described{{"w", 1, []int{2}}}}.encode()
	m := manifest{ranks: 3, label: label{head: h, sums: []sum{{7, 8}}}}
	want := "PMCK" + "\x01\x00\x00\x00" + "\x03\x00\x00\x00" + string([]byte{byte(len(h)), 0, 0, 0, 0, 0, 0, 0}) + string(h) +
		"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x07\x08" + strings.Repeat("\x00", 30)
	end := sha256.Sum256([]byte(want))
	want += string(end[:])
	if got := string(m.encode()); got != want {
		t.Errorf("got %q", got)
	}
	back, err := decodeManifest([]byte(want))
	if err != nil || back.ranks != 3 || back.Step != 1 || back.hash() != m.hash() {
		t.Errorf("read back %+v, %v", back, err)
	}
	start := string(shardStart(sum{1}, 2, 5))
	if start != "PMSH"+"\x01\x00\x00\x00"+"\x01"+strings.Repeat("\x00", 31)+"\x02\x00\x00\x00\x00\x00\x00\x00"+"\x03\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("a shard begins %q", start)
	}
}

// FuzzManifest gives the checksum, which no fuzzer finds.
func FuzzManifest(f *testing.F) {
	h := head{tensors: []described{{"w", 1, []int{300000}}}}.encode()
	whole := manifest{ranks: 3, label: label{head: h, sums: []sum{{7}, {8}}}}.encode()
	f.Add(whole[:len(whole)-sha256.Size])
	f.Fuzz(func(t *testing.T, p []byte) {
		end := sha256.Sum256(p)
		p = append(bytes.Clone(p), end[:]...)
		m, err := decodeManifest(p)
		if err == nil && !bytes.Equal(m.encode(), p) {
			t.Errorf("%q is read as %+v", p, m)
		}
	})
}
