package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

// TestSteps runs every step on ranks of one process, and looks at what they print.
func TestSteps(t *testing.T) {
	t.Setenv("MNIST_DIR", digits(t, 256, 50))
	for _, c := range []struct {
		step  string
		ranks int
		want  []string // all lines, sorted
	}{
		{"blocking", 2, []string{"Rank 0 has data 1", "Rank 1 has data 1"}},
		{"immediate", 3, []string{"Rank 0 has data 1", "Rank 0 started sending", "Rank 1 has data 1", "Rank 1 started receiving"}},
		{"groups", 3, []string{"Rank 0 has data 2", "Rank 1 has data 2", "Rank 2 has data 1"}},
		{"ring", 2, []string{"rank 0: [2 4 6 8 10 12], [2 4 6 8 10 12], [2 4 6 8 10 12]", "rank 1: [2 4 6 8 10 12], [2 4 6 8 10 12], [2 4 6 8 10 12]"}},
		{"ring", 1, []string{"rank 0: [1 2 3 4 5 6], [1 2 3 4 5 6], [1 2 3 4 5 6]"}},
		{"collectives", 2, []string{"rank 0: all_gather [0 1]", "rank 0: all_reduce [1]", "rank 0: broadcast [0]", "rank 0: gather [0 1]",
			"rank 0: reduce [1]", "rank 0: scatter [0]", "rank 1: all_gather [0 1]", "rank 1: all_reduce [1]", "rank 1: broadcast [0]",
			"rank 1: scatter [1]"}},
		{"average", 2, []string{`Rank 0, epoch 1: \d\.\d{4}`, `Rank 1, epoch 1: \d\.\d{4}`}},
		{"ddp", 2, []string{`test accuracy \d+\.\d\d %`}},
	} {
		got := runs(t, c.step, c.ranks)
		if len(got) != len(c.want) {
			t.Errorf("%s: got %q, want %q", c.step, got, c.want)
			continue
		}
		for i, want := range c.want {
			if got[i] != want && !regexp.MustCompile("^"+want+"$").MatchString(got[i]) {
				t.Errorf("%s: got %q, want %q", c.step, got[i], want)
			}
		}
	}
}

// TestWithoutData names the folder that has no images.
func TestWithoutData(t *testing.T) {
	t.Setenv("MNIST_DIR", t.TempDir())
	for _, name := range []string{"average", "ddp"} {
		err := ranks.Run(t.Context(), 1, func(ctx context.Context, g *ops.Group) error { return steps[name](ctx, g, nil) })
		if err == nil || !strings.Contains(err.Error(), os.Getenv("MNIST_DIR")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// runs returns the lines that all ranks print, sorted.
func runs(t *testing.T, name string, n int) []string {
	t.Helper()
	out := &shared{}
	if err := ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error { return steps[name](ctx, g, out) }); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lines := strings.Split(strings.TrimSpace(out.b.String()), "\n")
	slices.Sort(lines)
	return lines
}

// A shared writer is for all ranks at once.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// digits writes noise in MNIST's form.
func digits(t *testing.T, train, test int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for half, n := range map[string]uint32{"train": uint32(train), "t10k": uint32(test)} {
		images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, n)
		images = append(images, 0, 0, 0, mnist.Side, 0, 0, 0, mnist.Side)
		labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, n)
		for range n {
			labels = append(labels, byte(rng.IntN(mnist.Classes)))
			for range mnist.Pixels {
				images = append(images, byte(rng.IntN(256)))
			}
		}
		for kind, data := range map[string][]byte{"images-idx3": images, "labels-idx1": labels} {
			if err := os.WriteFile(filepath.Join(dir, half+"-"+kind+"-ubyte"), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
