package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// releases has TestFailureVersion build another release, which takes a while.
const releases = "PEERMESH_RELEASES"

// TestFailureVersion has a peer of the next release of the wire join one of this: each is
// told that the other speaks another version, and what to do.
func TestFailureVersion(t *testing.T) {
	if os.Getenv(releases) == "" {
		t.Skipf("builds peer anew: set %s, or make releases", releases)
	}
	next := nextRelease(t) // first: a host gives up after minutes, which building may take
	h := newHost(t)
	s := watched(t, exec.Command(next, h.joins()...))
	if s.wait(t) == 0 {
		t.Error("status 0")
	}
	says(t, s, "of Peermesh, this peer version", "run the same release everywhere (peer version says which)")
}

// nextRelease builds peer with a wire of the next version, and nothing else changed.
func nextRelease(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	member, err := filepath.Abs("../../mesh/member.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(member)
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`protocolVersion = (\d+)`)
	if !constant.Match(text) {
		t.Fatal("mesh/member.go has no version")
	}
	next := filepath.Join(dir, "member.go")
	if err := os.WriteFile(next, constant.ReplaceAll(text, []byte("protocolVersion = ${1}0")), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{member: next}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "peer")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "peermesh/cmd/peer").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.TrimSpace(string(out)))
	}
	return path
}
