package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"peermesh/trainer/nn/layers"
)

// maxText bounds what is read, in bytes.
const maxText = 64 << 20

// A corpus is text to learn, and text to be judged by.
type corpus struct{ train, valid []byte }

// goSource is the Go distribution's own code under a folder of its src, without
// tests. Every twentieth file is to be judged by.
func goSource(ctx context.Context, folder string) (corpus, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return corpus{}, fmt.Errorf("asking where Go is: %w; say -text FILE to do without", err)
	}
	var c corpus
	n := 0
	root := filepath.Join(strings.TrimSpace(string(out)), "src", folder)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n++; n%20 == 0 {
			c.valid = append(c.valid, text...)
		} else {
			c.train = append(c.train, text...)
		}
		if len(c.train) > maxText {
			return fs.SkipAll
		}
		return nil
	})
	return c, err
}

// textFile is any file, of which the last twentieth is to be judged by.
func textFile(path string) (corpus, error) {
	info, err := os.Stat(path)
	if err != nil {
		return corpus{}, err
	}
	if info.Size() > maxText {
		return corpus{}, fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), maxText)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return corpus{}, err
	}
	cut := len(text) - len(text)/20
	return corpus{text[:cut], text[cut:]}, nil
}

// A windows makes batches of windows of a text, in memory that it uses again: of
// each byte of a window, the label is the one after it.
type windows struct {
	context int
	batch   layers.Batch
}

func (w *windows) size(n int) {
	w.batch.X = append(w.batch.X[:0], make([]float32, n*w.context)...)
	w.batch.Labels = append(w.batch.Labels[:0], make([]int32, n*w.context)...)
}

// set makes window k that at the text's start.
func (w *windows) set(k int, text []byte) {
	for i := range w.context {
		w.batch.X[k*w.context+i] = float32(text[i])
		w.batch.Labels[k*w.context+i] = int32(text[i+1])
	}
}

// random are windows lo … hi-1 of those of a step, which do not depend on how many
// ranks share them out.
func (w *windows) random(text []byte, step, lo, hi int) layers.Batch {
	w.size(hi - lo)
	for k := lo; k < hi; k++ {
		r := rand.New(rand.NewPCG(uint64(step), uint64(k)))
		w.set(k-lo, text[r.IntN(len(text)-w.context):])
	}
	return w.batch
}

// at are the windows of a text by number, one after another.
func (w *windows) at(text []byte, numbers []int) layers.Batch {
	w.size(len(numbers))
	for k, i := range numbers {
		w.set(k, text[i*w.context:])
	}
	return w.batch
}
