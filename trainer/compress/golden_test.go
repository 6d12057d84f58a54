package compress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// A goldenCase is a line of testdata/torch/powersgd.jsonl, which powersgd.py beside it
// writes and explains.
type goldenCase struct {
	Torch    string
	Config   PowerSGDConfig
	Type     string
	Draws    []map[string][]float64
	Averages [][]float64
	Feedback [][]float64
}

// goldenParams are the parameters of powersgd.py.
func goldenParams(t tensor.DType) []*trainer.Param {
	return []*trainer.Param{
		matrixParam("conv", t, 8, 2, 3), matrixParam("wide", t, 5, 12), matrixParam("bias", t, 8),
		matrixParam("tall", t, 13, 3), matrixParam("small", t, 2, 2),
	}
}

// giveGradients gives them a rank's gradients of a step.
func giveGradients[T real](params []*trainer.Param, rank, step int) {
	e := 0
	for _, p := range params {
		for i := range host[T](p.Grad) {
			host[T](p.Grad)[i] = T((7*rank+5*step+3*e+step*e+(rank+1)*e*e)%13-5) / 8
			e++
		}
	}
}

// PyTorch's powerSGD_hook, given the same random matrices, makes the same averages in
// every step and keeps the same feedback: float64 to 1e-9, float32 as far as that goes.
// Our buckets may be others, for what becomes of a parameter does not depend on them.
func TestGoldenPowerSGD(t *testing.T) {
	text, err := os.ReadFile("testdata/torch/powersgd.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(text) {
		var c goldenCase
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if c.Torch != "" {
			continue
		}
		cases++
		for _, limit := range []int{0, 200} {
			t.Run(fmt.Sprintf("%d, buckets of %d", cases, limit), func(t *testing.T) {
				if c.Type == "float64" {
					goldenRun[float64](t, c, tensor.Float64, limit, 1e-9)
				} else {
					goldenRun[float32](t, c, tensor.Float32, limit, 1e-5)
				}
			})
		}
	}
	if cases == 0 {
		t.Error("there are no cases")
	}
}

func goldenRun[T real](t *testing.T, c goldenCase, dtype tensor.DType, limit int, tolerance float64) {
	cold := c.Config.NoWarmStart
	c.Config.NoWarmStart = false // here every step has the matrix that torch drew, instead of our own
	noErrors(t, each(memnet.New(len(c.Feedback)), func(g *ops.Group) error {
		params := goldenParams(dtype)
		h, err := NewPowerSGD(params, c.Config)
		if err != nil {
			return err
		}
		ddp, err := trainer.NewDDP(t.Context(), g, params, trainer.DDPConfig{Hook: h, FirstBucket: limit, Bucket: limit})
		if err != nil {
			return err
		}
		for step, want := range c.Averages {
			err := draw[T](h, c.Draws[step], cold && step >= h.c.Start)
			giveGradients[T](params, g.Rank(), step)
			for i := range params {
				ddp.Ready(len(params) - 1 - i)
			}
			var got []T
			if err := errors.Join(err, ddp.Wait()); err != nil {
				return err
			}
			for _, p := range params {
				got = append(got, host[T](p.Grad)...)
			}
			if err := near(got, want, 1, tolerance); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return sameFeedback[T](h, params, c.Feedback[g.Rank()], T(g.Size()), tolerance)
	}))
}

// sameFeedback compares what is left of the parameters that are compressed. Of the others
// torch keeps by how much its rank's gradient is not the average, which over all ranks
// comes to nothing; we keep nothing.
func sameFeedback[T real](h *PowerSGD, params []*trainer.Param, want []float64, ranks T, tolerance float64) error {
	for _, p := range params {
		n := p.Grad.Len()
		rest, ok := h.at[p.Name]
		if !ok { // without feedback
			rest = tensor.New(p.Grad.DType(), n)
		}
		if h.of[p.Name] == nil {
			for _, v := range host[T](rest) {
				if v != 0 {
					return fmt.Errorf("%s travels as it is, and %v is left", p.Name, v)
				}
			}
		} else if err := near(host[T](rest), want[:n], ranks, tolerance); err != nil {
			return fmt.Errorf("feedback of %s: %w", p.Name, err)
		}
		want = want[n:]
	}
	return nil
}

// draw gives a hook the matrices that torch drew before a step, each by its rows. It is
// an error if that is not for all that the hook compresses, or for none.
func draw[T real](h *PowerSGD, drawn map[string][]float64, all bool) error {
	if all && len(drawn) != len(h.of) || len(drawn) != 0 && len(drawn) != len(h.of) {
		return fmt.Errorf("torch drew %d matrices, for %d parameters", len(drawn), len(h.of))
	}
	if len(drawn) == 0 {
		return nil
	}
	for name, f := range h.of {
		q := drawn[strconv.Itoa(f.m)]
		if len(q) != f.m*f.r {
			return fmt.Errorf("torch drew %d elements for %s of %d × %d", len(q), name, f.m, f.r)
		}
		for i, v := range q {
			host[T](f.q)[i] = T(v)
		}
	}
	return nil
}

// near compares what is got times a factor.
func near[T real](got []T, want []float64, factor T, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(got), len(want))
	}
	for i, v := range got {
		if off := math.Abs(float64(v*factor) - want[i]); !(off <= tolerance) {
			return fmt.Errorf("element %d is %v, want %v", i, v*factor, want[i])
		}
	}
	return nil
}
