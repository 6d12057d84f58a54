package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/trainer/nn/layers"
)

func tiny(lines *[]string) options {
	return options{
		steps: 60, batch: 8, context: 16, width: 16, blocks: 1, threads: 1, rate: 1e-2, every: 20,
		log: func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) },
	}
}

// A tiny form of the example learns a text that repeats itself, on two ranks as on
// one, and goes on with it by heart.
func TestLearns(t *testing.T) {
	const line = "all work and no play. "
	text := corpus{bytes.Repeat([]byte(line), 50), bytes.Repeat([]byte(line), 6)}
	var scores []layers.Score
	for _, n := range []int{1, 2} {
		var lines []string
		err := ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
			net, s, err := train(ctx, g, text, tiny(&lines))
			if err != nil || g.Rank() != 0 {
				return err
			}
			scores = append(scores, s)
			sample, err := generate(ctx, net, "all work", 40, 0.1, rand.New(rand.NewPCG(1, 1)))
			if !strings.HasPrefix(sample, "all work and no ") {
				t.Errorf("%d ranks: it says %q", n, sample)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) != 3 {
			t.Fatalf("%d ranks: %q", n, lines)
		}
		if bits := scores[len(scores)-1].Mean() / math.Ln2; bits > 1 {
			t.Errorf("%d ranks: %.3f bits per byte\n%s", n, bits, strings.Join(lines, "\n"))
		}
	}
	if d := scores[0].Mean() - scores[1].Mean(); math.Abs(d) > 1e-2 {
		t.Errorf("one rank and two have losses of %v and %v", scores[0].Mean(), scores[1].Mean())
	}
}

func TestGoSource(t *testing.T) {
	c, err := goSource(t.Context(), "strings")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(c.train, []byte("package strings")) {
		t.Errorf("%d bytes that are not of package strings", len(c.train))
	}
	if bytes.Contains(c.train, []byte("func Test")) {
		t.Error("tests are in the text")
	}
	if _, err := goSource(t.Context(), "no such folder"); err == nil {
		t.Error("a folder that is not there has text")
	}
}

func TestTextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := textFile(path)
	if err != nil || len(c.train) != 95 || len(c.valid) != 5 {
		t.Errorf("%d and %d bytes; %v", len(c.train), len(c.valid), err)
	}
	var lines []string
	err = ranks.Run(t.Context(), 1, func(ctx context.Context, g *ops.Group) error {
		_, _, err := train(ctx, g, c, tiny(&lines))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "context") {
		t.Errorf("a text that is shorter than a window: %v", err)
	}
}

// The windows of a step are the same however many ranks share them out.
func TestWindows(t *testing.T) {
	text := make([]byte, 500)
	for i := range text {
		text[i] = byte(i * i)
	}
	w := windows{context: 7}
	all := w.random(text, 3, 0, 6)
	x := append([]float32(nil), all.X...)
	second := w.random(text, 3, 4, 6)
	for i, v := range second.X {
		if v != x[4*7+i] {
			t.Fatalf("byte %d of a share differs", i)
		}
		if i%7 < 6 && float32(second.Labels[i]) != second.X[i+1] {
			t.Fatalf("label %d is not the byte after", i)
		}
	}
}

// Draw follows the odds.
func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var counts [3]int
	z := []float32{0, float32(math.Log(2)), float32(math.Inf(-1))}
	for range 3000 {
		counts[draw(z, 1, r)]++
	}
	if counts[2] != 0 || counts[0] < 850 || counts[0] > 1150 {
		t.Errorf("odds of 1 to 2 to 0 gave %v", counts)
	}
}
