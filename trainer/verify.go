package trainer

import (
	"context"
	"fmt"
	"strings"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// maxDescription bounds the text that describes one rank's parameters, in bytes.
const maxDescription = 4 << 20

// A ParamsError says that two ranks have different parameters. Every rank gets
// it.
type ParamsError struct {
	Rank   int    // a rank that differs from rank 0
	Index  int    // the first parameter that does
	Theirs string // what it is on that rank
	First  string // what it is on rank 0
}

func (e *ParamsError) Error() string {
	return fmt.Sprintf("trainer: parameter %d is %s on rank %d and %s on rank 0: every rank must build the same model",
		e.Index, e.Theirs, e.Rank, e.First)
}

// verify compares the parameters of all ranks by name, type and shape.
func verify(ctx context.Context, g *ops.Group, params []*Param, own error) error {
	var lines []string
	for _, p := range params {
		lines = append(lines, describe(p))
	}
	return verifyLines(ctx, g, lines, own)
}

// verifyLines compares descriptions, a line for each parameter. own is this
// rank's own complaint: it takes part all the same, so that nobody waits for it,
// and all learn of it.
func verifyLines(ctx context.Context, g *ops.Group, lines []string, own error) error {
	text := strings.Join(lines, "\n")
	if own == nil && len(text) > maxDescription {
		own = fmt.Errorf("trainer: the parameters take %d bytes to describe: at most %d", len(text), maxDescription)
	}
	if own != nil {
		text = "! " + own.Error()
	}
	all, err := gatherText(ctx, g, text)
	if err != nil {
		return fmt.Errorf("trainer: comparing parameters: %w", err)
	}
	if own != nil {
		return own
	}
	for rank, text := range all {
		if complaint, ok := strings.CutPrefix(text, "! "); ok {
			return fmt.Errorf("trainer: rank %d refuses its parameters: %s", rank, complaint)
		}
		if err := compare(rank, text, all[0]); err != nil {
			return err
		}
	}
	return nil
}

// describe is a parameter in one line, such as fc1.weight float32[64 4608].
func describe(p *Param) string {
	s := describeValue(p)
	if p.Grad.Memory() == nil {
		s += " without gradient"
	} else if elsewhere(p) {
		s += " with its gradient outside host memory"
	}
	return s
}

// describeValue is describe for who does not ask for gradients.
func describeValue(p *Param) string {
	return strings.ReplaceAll(fmt.Sprintf("%q %v", p.Name, p.Value), "\n", " ")
}

func compare(rank int, theirs, first string) error {
	if theirs == first {
		return nil
	}
	a, b := strings.Split(theirs, "\n"), strings.Split(first, "\n")
	for i := range max(len(a), len(b)) {
		if x, y := line(a, i), line(b, i); x != y {
			return &ParamsError{Rank: rank, Index: i, Theirs: x, First: y}
		}
	}
	return nil
}

func line(lines []string, i int) string {
	if i >= len(lines) || lines[i] == "" {
		return "missing"
	}
	return lines[i]
}

// gatherText leaves every rank's text, by rank, on all ranks.
func gatherText(ctx context.Context, g *ops.Group, text string) ([]string, error) {
	lengths := make([]int64, g.Size())
	if err := g.AllGather(ctx, tensor.Of(lengths), tensor.Of([]int64{int64(len(text))})).Wait(); err != nil {
		return nil, err
	}
	longest := 0
	for rank, n := range lengths {
		if n < 0 || n > maxDescription {
			return nil, fmt.Errorf("rank %d announces a text of %d bytes: at most %d", rank, n, maxDescription)
		}
		longest = max(longest, int(n))
	}
	in, out := make([]byte, longest), make([]byte, longest*g.Size())
	copy(in, text)
	if err := g.AllGather(ctx, tensor.Of(out), tensor.Of(in)).Wait(); err != nil {
		return nil, err
	}
	texts := make([]string, g.Size())
	for rank, n := range lengths {
		texts[rank] = string(out[rank*longest:][:n])
	}
	return texts, nil
}

// averageable refuses gradients that a DDP cannot scale.
func averageable(params []*Param) error {
	for _, p := range params {
		_, f32 := tensor.Data[float32](p.Grad)
		_, f64 := tensor.Data[float64](p.Grad)
		switch {
		case p.Grad.Memory() == nil:
		case !f32 && !f64:
			return fmt.Errorf("trainer: gradient of %q is %v: want float32 or float64 in host memory", p.Name, p.Grad)
		case p.Grad.Len() != p.Value.Len():
			return fmt.Errorf("trainer: gradient of %q is %v, its value %v: want one shape", p.Name, p.Grad, p.Value)
		}
	}
	return nil
}

// broadcast gives every rank the values of one.
func broadcast(ctx context.Context, g *ops.Group, params []*Param, from int) error {
	var works []*ops.Work
	for _, p := range params {
		works = append(works, g.Broadcast(ctx, p.Value, g.Global(from)))
	}
	for i, w := range works {
		if err := w.Wait(); err != nil {
			return fmt.Errorf("trainer: broadcast of %q: %w", params[i].Name, err)
		}
	}
	return nil
}
