package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"peermesh/internal/programs"
)

// TestLaunched starts the example in three processes, by peer launch.
func TestLaunched(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if err := programs.Put(ctx, dir, "peermesh/cmd/peer", "peermesh/examples/launched"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "peer"), "launch", "-n", "3", "--", filepath.Join(dir, "launched"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"[0] rank 0 of 3: the sum is [3 3]\n", "[1] rank 1 of 3", "[2] rank 2 of 3"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
