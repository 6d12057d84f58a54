package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIdentities reads the keys back by the node's rules: they are in the order
// of their IDs as the mesh sorts them, and nobody else's.
func TestIdentities(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	keys, err := newIdentities(5, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, path := range keys.paths {
		status, stdout, stderr := in("id", "--identity", path)
		if status != 0 {
			t.Fatalf("peer id: status %d, %s", status, stderr)
		}
		ids = append(ids, strings.TrimSpace(stdout))
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 5 {
		t.Errorf("the peer IDs are not five in order: %q", ids)
	}
	if err := keys.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(keys.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", keys.dir, err)
	}
}

// TestForget has each child clean up behind itself.
func TestForget(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	keys, err := newIdentities(2, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range keys.paths {
		if _, err := os.Stat(keys.dir); err != nil {
			t.Errorf("the folder went before the last key: %v", err)
		}
		if err := forget(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(keys.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", keys.dir, err)
	}
	if err := forget(keys.paths[0]); err == nil {
		t.Error("a key was forgotten twice")
	}
	if err := keys.remove(); err != nil {
		t.Errorf("remove after the children: %v", err)
	}
}

func TestIdentitiesNoFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
	if _, err := newIdentities(1, 0, 1); err == nil {
		t.Error("keys were written to a folder that is not there")
	}
}

// TestID makes an identity and finds it again.
func TestID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	_, first, _ := in("id", "--identity", path)
	status, again, stderr := in("id", "--identity", path)
	if status != 0 || first != again || !strings.HasPrefix(first, "12D3KooW") {
		t.Errorf("status %d, %q and then %q, stderr %q", status, first, again, stderr)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v; want mode 0600", info.Mode(), err)
	}
}

// TestIDBad refuses files that are no private keys, or no longer private.
func TestIDBad(t *testing.T) {
	dir := t.TempDir()
	noKey, open := filepath.Join(dir, "no-key"), filepath.Join(dir, "open")
	if err := os.WriteFile(noKey, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	in("id", "--identity", open)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{noKey: "is not a libp2p private key", open: "can be read by others", dir: "not a regular file"} {
		status, _, stderr := in("id", "--identity", path)
		if status != statusUsage || !strings.Contains(stderr, want) {
			t.Errorf("peer id --identity %s: status %d, %q; want 2 and %q", path, status, stderr, want)
		}
		isOneLine(t, stderr)
	}
}
