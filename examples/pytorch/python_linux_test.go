package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

// interpreter is a Python that has PyTorch: $PEERMESH_PYTHON, Debian's, or the path's.
var interpreter = sync.OnceValue(func() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range []string{os.Getenv("PEERMESH_PYTHON"), "/usr/bin/python3", "python3"} {
		if name != "" && exec.CommandContext(ctx, name, "-c", "import importlib.util, socket; socket.recv_fds; importlib.util.find_spec('torch').name").Run() == nil {
			return name
		}
	}
	return ""
})

// python is the interpreter; without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("PyTorch takes seconds to start")
	}
	if interpreter() == "" {
		t.Skip("no Python here has PyTorch: apt-get install python3-torch, or name one in $PEERMESH_PYTHON")
	}
	return interpreter()
}

// scripts runs a script as n ranks, and returns what is written and how it ends.
func scripts(t *testing.T, n int, args ...string) (string, error) {
	t.Helper()
	name := python(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", here)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Setenv("OMP_NUM_THREADS", "1")
	var b strings.Builder
	out := &console{w: &b}
	err = ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
		s := &speaker{to: out, prefix: fmt.Sprintf("[%d] ", g.Rank())}
		err := run(ctx, g, s, name, args...)
		s.Close()
		return err
	})
	return b.String(), err
}

// Tensors come out as they should, and one rank's exception ends the run for both.
func TestPythonCollectives(t *testing.T) {
	out, err := scripts(t, 2, "testdata/collectives.py")
	if err == nil || !strings.Contains(err.Error(), "rank 1: ") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"[0] all is well", "[1] all is well", "[1] ValueError: not today", "[0] told: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// idx writes an array of bytes as MNIST's files have it.
func idx(t *testing.T, path string, data []byte, shape ...int) {
	t.Helper()
	p := []byte{0, 0, 8, byte(len(shape))}
	for _, n := range shape {
		p = binary.BigEndian.AppendUint32(p, uint32(n))
	}
	if err := os.WriteFile(path, append(p, data...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// digits makes a folder with images whose class is where their ink is.
func digits(t *testing.T) string {
	dir := t.TempDir()
	for half, n := range map[string]int{"train": 320, "t10k": 40} {
		images, labels := make([]byte, n*mnist.Pixels), make([]byte, n)
		for i := range n {
			labels[i] = byte(i % mnist.Classes)
			for k := range 56 {
				images[i*mnist.Pixels+int(labels[i])*70+k] = byte(140 + (i*7+k*13)%110)
			}
		}
		idx(t, filepath.Join(dir, half+"-images-idx3-ubyte"), images, n, mnist.Side, mnist.Side)
		idx(t, filepath.Join(dir, half+"-labels-idx1-ubyte"), labels, n)
	}
	return dir
}

// parameters reads what train.py has saved.
func parameters(t *testing.T, path string) []float32 {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(p)/4)
	if err := binary.Read(bytes.NewReader(p), binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// Two ranks train the model that one Python process, without a bridge, trains on the
// joint batches: to rounding, and both the same to the bit.
func TestPythonEquivalence(t *testing.T) {
	name, saved := python(t), filepath.Join(t.TempDir(), "model")
	t.Setenv("MNIST_DIR", digits(t))
	train := []string{"train.py", "--batch-size", "32", "--epochs", "2", "--lr", "0.02", "--save"}
	if out, err := scripts(t, 2, append(train, saved)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, append(train, saved+".alone")...).CombinedOutput(); err != nil {
		t.Fatalf("alone: %v\n%s", err, out)
	}
	alone, zero, one := parameters(t, saved+".alone.0"), parameters(t, saved+".0"), parameters(t, saved+".1")
	if len(alone) != 21840 || len(zero) != len(alone) || len(one) != len(alone) {
		t.Fatalf("%d, %d and %d parameters, want 21840 each", len(alone), len(zero), len(one))
	}
	worst := 0.0
	for i, want := range alone {
		if zero[i] != one[i] {
			t.Fatalf("parameter %d is %v on rank 0, %v on rank 1", i, zero[i], one[i])
		}
		worst = max(worst, math.Abs(float64(zero[i]-want)))
	}
	if worst > 1e-5 {
		t.Errorf("parameters differ by up to %g", worst)
	}
	t.Logf("20 steps: parameters differ by up to %g", worst)
}
