package gpu

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// TestMemory holds device memory to the contract, with chunks that are smaller than
// the memory.
func TestMemory(t *testing.T) {
	d := opened(t, Config{Chunk: 528, Depth: 2})
	if d.kernels.failure != nil {
		t.Fatal(d.kernels.failure)
	}
	tensortest.TestMemory(t, func(n int) tensor.Memory { return allocated(t, d, n) })
}

func allocated(t testing.TB, d *Device, n int) *Memory {
	t.Helper()
	m, err := d.NewMemory(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestMemoryWithoutCompiler has the host do the arithmetic, for want of kernels.
func TestMemoryWithoutCompiler(t *testing.T) {
	needFakes(t)
	fail(t, EnvCUDA, "cuModuleLoadData", 1, 221)
	d := opened(t, Config{Depth: 1})
	if d.kernels.failure == nil || d.up.all[0].memory != nil {
		t.Fatal("there are kernels")
	}
	tensortest.TestMemory(t, func(n int) tensor.Memory { return allocated(t, d, n) })
}

// TestKernels compares every kernel with the host's arithmetic, bit for bit, over more
// elements than a launch has threads in one block.
func TestKernels(t *testing.T) {
	d := opened(t, Config{Chunk: 4096})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dtype := range tensortest.DTypes() {
		for _, op := range tensortest.Ops(dtype) {
			if _, ok := d.kernels.fold(dtype, op); !ok {
				t.Errorf("there is no kernel for %v of %v", op, dtype)
			}
			p, q := make([]byte, 1000*dtype.Size()), make([]byte, 1000*dtype.Size())
			tensortest.Fill(p, dtype, rng)
			tensortest.Fill(q, dtype, rng)
			m := allocated(t, d, len(p))
			_, err := m.WriteAt(p, 0)
			err = errors.Join(err, m.ReduceAt(q, 0, dtype, op), tensor.Host(p).ReduceAt(q, 0, dtype, op))
			_, e := m.ReadAt(q, 0)
			if err = errors.Join(err, e); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p, q) && !tensortest.Equal(p, q, dtype) {
				t.Errorf("%v of %v differs from the host's", op, dtype)
			}
		}
	}
}

// TestKernelText looks at the text that is shipped: an entry for every kernel, of three
// parameters of 64 bits, and no instruction that is not exact.
func TestKernelText(t *testing.T) {
	names := KernelNames(kernelText)
	if len(names) != 75 {
		t.Errorf("%d kernels", len(names))
	}
	for _, name := range names {
		if !strings.Contains(kernelText, ".param .u64 "+name+"_param_2\n)") {
			t.Errorf("%s does not have three parameters of 64 bits", name)
		}
	}
	for _, inexact := range []string{".ftz", ".approx", "fma.", "mad.rn", ".full."} {
		if strings.Contains(kernelText, inexact) {
			t.Errorf("the text has %s", inexact)
		}
	}
}

// TestLarge moves more than the belt holds, from several goroutines at once.
func TestLarge(t *testing.T) {
	d := opened(t, Config{Chunk: 1024, Depth: 2})
	tell(t, EnvCUDA, "fake_copy_delay", 20)
	const lanes, each = 4, 50_000
	m := allocated(t, d, lanes*each)
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			p := bytes.Repeat([]byte{byte(lane + 1)}, each)
			_, err := m.WriteAt(p, int64(lane*each))
			err = errors.Join(err, m.ReduceAt(p, int64(lane*each), tensor.Uint8, tensor.Sum))
			_, e := m.ReadAt(p, int64(lane*each))
			if err = errors.Join(err, e); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(p, bytes.Repeat([]byte{2 * byte(lane+1)}, each)) {
				t.Errorf("lane %d has other bytes", lane)
			}
		})
	}
	all.Wait()
}

// TestAlloc has tensors of zeros, of all sizes.
func TestAlloc(t *testing.T) {
	d := opened(t, Config{})
	for _, shape := range [][]int{{}, {0}, {3}, {4, 5}} {
		x, err := d.Alloc(tensor.Float64, shape...)
		if err != nil {
			t.Fatal(err)
		}
		p := bytes.Repeat([]byte{1}, int(x.Bytes()))
		if _, err := x.ReadAt(p, 0); err != nil || len(bytes.Trim(p, "\x00")) > 0 {
			t.Errorf("%v: %x, %v", x, p, err)
		}
		m := x.Memory().(*Memory)
		if m.Len() != x.Bytes() || m.Device() != d {
			t.Errorf("%v is in %v of %v", x, m, m.Device())
		}
	}
	if n := len(d.Leaks()); n != 4 {
		t.Errorf("%d leaks, want the 4 tensors", n)
	}
	if _, err := d.NewMemory(-1); err == nil {
		t.Error("there is memory of negative size")
	}
}

// TestOutOfMemory says what was wanted and what there was.
func TestOutOfMemory(t *testing.T) {
	d := opened(t, Config{})
	_, err := d.NewMemory(1 << 40)
	if !errors.Is(err, ErrOutOfMemory) || errors.Is(err, ErrLost) {
		t.Fatalf("1 TiB: %v", err)
	}
	for _, part := range []string{"cuMemAlloc_v2", "1099511627776 bytes", "free", "268435456 in all", "Fake 0", "FAKE_ERROR_2, 2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	fail(t, EnvCUDA, "cuMemHostAlloc", 1, 2)
	if _, err := d.Pin(77); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "77 bytes") {
		t.Errorf("pinned: %v", err)
	}
	fail(t, EnvCUDA, "cuMemAlloc_v2", 1, 2)
	fail(t, EnvCUDA, "cuMemGetInfo_v2", 1, 1)
	if _, err := d.NewMemory(5); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("without the sizes: %v", err)
	}
}

// TestNoStep multiplies what is not multiplied, neither by a kernel nor on the host.
func TestNoStep(t *testing.T) {
	m := allocated(t, opened(t, Config{Chunk: 1024, Depth: 1}), 8)
	if err := m.ScaleAt(0, 8, tensor.Bool, 2); err == nil || !strings.Contains(err.Error(), "bool") {
		t.Errorf("bools: %v", err)
	}
}
