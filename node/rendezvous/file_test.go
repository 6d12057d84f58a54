package rendezvous

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/node"
)

// entriesOf are the IDs in a file, as one string.
func entriesOf(t *testing.T, path string) string {
	t.Helper()
	all, err := (&file{path: path}).read()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range all {
		ids = append(ids, e.Mesh+" "+e.id.String())
	}
	return strings.Join(ids, ", ")
}

// TestFile has three peers find each other in a folder, and leave nothing but the lock.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	nodes := []*node.Node{start(t), start(t), start(t, "/ip6/::1/tcp/0")}
	var all []*searcher
	for _, n := range nodes {
		all = append(all, search(t, n, "file://"+dir, Config{}))
	}
	for i, s := range all {
		met := map[string]bool{nodes[i].ID().String(): true}
		for len(met) < len(nodes) {
			met[next(t, "the others", s.found).ID.String()] = true
		}
	}
	for _, s := range all {
		s.stop()
		if err := next(t, "the end", s.done); err != nil {
			t.Error(err)
		}
		s.done <- nil
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != inFolder+".lock" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFileStale finds the entries of a run that was killed, of another mesh, and of an
// address where somebody else is by now.
func TestFileStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	dead, taken, alive, here := start(t), start(t), start(t), start(t)
	line := func(mesh string, n *node.Node, addr string) entry {
		where, _, _ := strings.Cut(addr, "/p2p/")
		return entry{Mesh: mesh, Since: time.Unix(1, 0).UTC(), Peer: []string{where + "/p2p/" + n.ID().String()}}
	}
	data, err := writeEntries([]entry{
		line("test", dead, dead.Addrs()[0].String()), line("test", taken, alive.Addrs()[0].String()),
		line("other", dead, dead.Addrs()[0].String()), line("test", alive, alive.Addrs()[0].String()),
	})
	if err := errors.Join(err, os.WriteFile(path, data, 0o644), dead.Close()); err != nil {
		t.Fatal(err)
	}
	s := search(t, here, "file://"+path, Config{})
	s.finds(t, alive)
	want := "other " + dead.ID().String() + ", test " + alive.ID().String() + ", test " + here.ID().String()
	for deadline := time.Now().Add(soon); entriesOf(t, path) != want; {
		if time.Now().After(deadline) {
			t.Fatalf("the file holds %s, want %s", entriesOf(t, path), want)
		}
	}
	s.stop()
	if err := next(t, "the end", s.done); err != nil || strings.Contains(entriesOf(t, path), here.ID().String()) || len(s.found) > 0 {
		t.Errorf("%v; the file holds %s", err, entriesOf(t, path))
	}
	s.done <- nil
}

// TestFileRestored has an entry come back that another took out.
func TestFileRestored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	here := start(t)
	search(t, here, "file://"+path, Config{})
	for range 2 {
		for deadline := time.Now().Add(soon); entriesOf(t, path) != "test "+here.ID().String(); {
			if time.Now().After(deadline) {
				t.Fatalf("the file holds %q", entriesOf(t, path))
			}
		}
		if err := (&file{path: path}).change(t.Context(), func([]entry) []entry { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFileIsNone leaves files alone that are something else.
func TestFileIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("milk, bread\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := search(t, start(t), "file://"+path, Config{})
	if err := next(t, "an error", s.done); err == nil || !strings.Contains(err.Error(), "line 1 is not an entry") {
		t.Errorf("a shopping list is taken for a rendezvous: %v", err)
	}
	s.done <- nil
	if data, err := os.ReadFile(path); err != nil || string(data) != "milk, bread\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestLock has many add to a file at once: nobody's entry is lost.
func TestLock(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "peers")}
	n := start(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			own := entry{Mesh: "m", Since: time.Unix(int64(i), 0).UTC(), Peer: []string{n.Addrs()[0].String()}}
			if err := f.change(t.Context(), func(e []entry) []entry { return append(e, own) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := f.read(); err != nil || len(got) != 20 {
		t.Errorf("%d entries of 20, %v", len(got), err)
	}
	unlock, err := lock(t.Context(), f.path+".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, f.path+".lock"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is locked") {
		t.Errorf("two have the lock: %v", err)
	}
}

// FuzzEntries wants every file that is read to be written the same.
func FuzzEntries(f *testing.F) {
	const id = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5"
	f.Add([]byte(`{"mesh":"m","since":"2024-01-02T03:04:05Z","peer":["/ip4/127.0.0.1/tcp/1/p2p/` + id + `"]}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := readEntries(data)
		if err != nil {
			return
		}
		again, err := writeEntries(all)
		if err != nil {
			if len(data) > maxFile/8 {
				return // escaped, it is longer
			}
			t.Fatal(err)
		}
		back, err := readEntries(again)
		if err != nil || len(back) != len(all) || len(all) > 0 && !reflect.DeepEqual(names(back), names(all)) {
			t.Fatalf("%q becomes %q: %v", data, again, err)
		}
	})
}

func names(all []entry) (ids []string) {
	for _, e := range all {
		ids = append(ids, e.Mesh+e.id.String())
	}
	return ids
}

// FuzzPins wants no panic.
func FuzzPins(f *testing.F) {
	f.Add([]byte("tcp://h:1 12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5\n#\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if ids, err := readPins(data); err == nil && len(ids) > len(data) {
			t.Fatal("more pins than bytes")
		}
	})
}
