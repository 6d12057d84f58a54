package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn/layers"
	"peermesh/trainer/safetensors"
)

// bars are n images whose label says which two rows are bright.
func bars(n int) *mnist.Set {
	s := &mnist.Set{Images: make([]byte, n*mnist.Pixels), Labels: make([]byte, n)}
	for i := range s.Labels {
		s.Labels[i] = byte(i * 7 % mnist.Classes)
		for p := range 2 * mnist.Side {
			s.Images[i*mnist.Pixels+(int(s.Labels[i])*2+4)*mnist.Side+p] = byte(200 + (i*p)%50)
		}
	}
	return s
}

// A tiny form of the example learns: on two ranks, as on one, the loss goes down and
// most of what was not seen is told apart. The model that it saves can be read.
func TestLearns(t *testing.T) {
	data := &mnist.Data{Train: bars(240), Test: bars(101)}
	var scores []layers.Score
	for _, n := range []int{1, 2} {
		var lines []string
		path := filepath.Join(t.TempDir(), "model.safetensors")
		o := options{
			epochs: 6, batch: 20, blocks: 1, threads: 1, width: 4, rate: 0.05, save: path,
			log: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) },
		}
		var score layers.Score
		err := ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
			s, err := train(ctx, g, data, o)
			if g.Rank() == 0 {
				score = s
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if score.Count != 101 || score.Accuracy() < 0.8 || score.Mean() > 1.5 {
			t.Errorf("%d ranks: %+v, mean loss %v\n%s", n, score, score.Mean(), strings.Join(lines, "\n"))
		}
		if len(lines) != 6 {
			t.Errorf("%d ranks: %q", n, lines)
		}
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := f.Lookup("layer3.0.downsample.0.weight"); !ok {
			t.Errorf("saved %v", f.Tensors())
		}
		f.Close()
		scores = append(scores, score)
	}
	if d := scores[0].Mean() - scores[1].Mean(); d > 0.05 || d < -0.05 {
		t.Errorf("one rank and two have losses of %v and %v", scores[0].Mean(), scores[1].Mean())
	}
}

func TestRefuses(t *testing.T) {
	err := ranks.Run(t.Context(), 2, func(ctx context.Context, g *ops.Group) error {
		_, err := train(ctx, g, &mnist.Data{Train: bars(9)}, options{batch: 3})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "multiple") {
		t.Errorf("a batch that two ranks cannot share: %v", err)
	}
	if _, err := load(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty folder is data")
	}
}
