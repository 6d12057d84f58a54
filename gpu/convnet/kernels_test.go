package convnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"peermesh/gpu"
	"peermesh/gpu/internal/ptx"
)

// A launch is a kernel with arguments of small shapes, some odd.
type launch struct {
	kernel  string
	buffers []int // sizes: in floats, or if negative in small bytes
	n       int
	numbers []int
}

// launches have every kernel at least once.
var launches = []launch{
	{"convolve", []int{2 * 3 * 3 * 4, 2 * 2 * 5 * 6, 3 * 2 * 9, 3}, 2 * 3 * 3 * 4, []int{2, 3, 5, 6, 3}},
	{"pool", []int{2 * 2 * 3, -2 * 2 * 3, 2 * 5 * 7}, 2 * 2 * 3, []int{5, 7}},
	{"linear", []int{3 * 4, 3 * 5, 4 * 5, 4}, 3 * 4, []int{5, 4}},
	{"activate", []int{21}, 21, []int{7, 1, 12345, 678, 1 << 30, floatBits(4. / 3)}},
	{"activate", []int{24}, 24, []int{12, 3, 12345, 678, 1 << 31, floatBits(2)}},
	{"activate", []int{21}, 21, []int{7, 1, 12345, 678, 0, floatBits(4. / 3)}},
	{"likelihood", []int{30, 2 * 3, 3, 30, -3}, 3, []int{10}},
	{"gate", []int{9, 9}, 9, []int{floatBits(1.5)}},
	{"unpool", []int{2 * 5 * 7, 2 * 2 * 3, -2 * 2 * 3}, 2 * 2 * 3, []int{5, 7}},
	{"convolve_back", []int{2 * 2 * 5 * 6, 2 * 3 * 3 * 4, 3 * 2 * 9}, 2 * 2 * 5 * 6, []int{2, 3, 5, 6, 3}},
	{"convolve_weights", []int{2 * 3 * 2 * 9, 5 * 3 * 3 * 4, 5 * 2 * 5 * 6}, 2 * 3 * 2 * 9, []int{5, 2, 2, 3, 5, 6, 3}},
	{"convolve_bias", []int{2 * 3, 5 * 3 * 11}, 2 * 3, []int{5, 2, 3, 11}},
	{"linear_back", []int{3 * 5, 3 * 4, 4 * 5}, 3 * 5, []int{5, 4}},
	{"linear_weights", []int{2 * 4 * 5, 5 * 4, 5 * 5}, 2 * 4 * 5, []int{5, 2, 5, 4}},
	{"linear_bias", []int{2 * 4, 5 * 4}, 2 * 4, []int{5, 2, 4}},
	{"fold", []int{6, 6 * 5}, 6, []int{5}},
	{"fold", []int{6, 6}, 6, []int{1}},
	{"sgd", []int{9, 9, 9}, 9, []int{floatBits(.1), floatBits(.01), floatBits(-1), floatBits(.9), floatBits(.5), 1}},
	{"sgd", []int{9, 9, 9}, 9, []int{floatBits(.1), 0, floatBits(1), floatBits(.9), floatBits(1), 0}},
	{"adadelta", []int{9, 9, 9, 9}, 9, []int{floatBits(.5), floatBits(.01), floatBits(1), floatBits(.9), floatBits(.1), floatBits(1e-6)}},
}

// fill draws what buffers hold: positive numbers for what a root is taken of, and for others
// zeros and equals among them; the last bytes of a buffer of labels are small.
func (l launch) fill(rng *rand.Rand) (all [][]byte) {
	for _, size := range l.buffers {
		p := make([]byte, max(4*size, -size))
		for i := range p {
			p[i] = byte(rng.IntN(4))
		}
		for i := 0; size > 0 && i < len(p); i += 4 {
			v := float32(rng.IntN(64)-32) / 7
			if l.kernel == "adadelta" {
				v *= v
			}
			binary.LittleEndian.PutUint32(p[i:], math.Float32bits(v))
		}
		all = append(all, p)
	}
	return all
}

// onDevice launches it on a device.
func (l launch) onDevice(t *testing.T, d *gpu.Device, p *program, all [][]byte) {
	t.Helper()
	var memory []*gpu.Memory
	var args []gpu.Argument
	for _, b := range all {
		m, err := d.NewMemory(int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		closedAtEnd(t, m)
		if _, err := m.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		memory, args = append(memory, m), append(args, start(m))
	}
	p.run(l.kernel, l.n, args, l.numbers...)
	err := errors.Join(p.end(), p.s.Sync())
	for i, b := range all {
		_, e := memory[i].ReadAt(b, 0)
		err = errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestShippedKernels interprets the kernels as they are shipped, and compares their results,
// bit for bit, with those of their source, which TestStep compares with package nn's.
func TestShippedKernels(t *testing.T) {
	d := opened(t, 0)
	n := made(t, d, testConfig)
	shipped, err := ptx.Parse(kernelText)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for i, l := range launches {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		mine := l.fill(rng)
		var args []any
		var theirs [][]byte
		for _, b := range mine {
			theirs = append(theirs, bytes.Clone(b))
			args = append(args, theirs[len(theirs)-1])
		}
		args = append(args, uint64(l.n))
		for _, v := range l.numbers {
			args = append(args, uint64(uint32(v)))
		}
		l.onDevice(t, d, n.program, mine)
		if err := shipped[l.kernel].Run(2, 4, args...); err != nil {
			t.Errorf("%s: %v", l.kernel, err)
			continue
		}
		for k := range mine {
			if !bytes.Equal(mine[k], theirs[k]) {
				t.Errorf("%s: buffer %d of the text differs from the source's:\n%x\n%x", l.kernel, k, theirs[k], mine[k])
			}
		}
		used[l.kernel] = true
	}
	if names := gpu.KernelNames(kernelText); len(used) != len(names) || len(names) != len(shipped) {
		t.Errorf("%d of %d kernels were tried", len(used), len(names))
	}
}

// TestShippedNaN has a NaN stay one, in what a run that diverges goes through.
func TestShippedNaN(t *testing.T) {
	shipped, err := ptx.Parse(kernelText)
	if err != nil {
		t.Fatal(err)
	}
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	isNaN := func(p []byte) bool {
		v := math.Float32frombits(binary.LittleEndian.Uint32(p))
		return v != v
	}
	y := bytes.Clone(nan)
	if err := shipped["activate"].Run(1, 1, y, uint64(1), uint64(1), uint64(1), uint64(0), uint64(0), uint64(0), float32(1)); err != nil || !isNaN(y) {
		t.Errorf("activate: %x, %v", y, err)
	}
	q := bytes.Repeat([]byte{0, 0, 128, 63}, 4) // ones
	copy(q[8:], nan)
	if err := shipped["pool"].Run(1, 1, y, make([]byte, 1), q, uint64(1), uint64(2), uint64(2)); err != nil || !isNaN(y) {
		t.Errorf("pool: %x, %v", y, err)
	}
	dz, loss := make([]byte, 8), make([]byte, 8)
	z := append(bytes.Clone(nan), 0, 0, 128, 63)
	err = shipped["likelihood"].Run(1, 1, dz, loss, make([]byte, 4), z, []byte{1}, uint64(1), uint64(2))
	if v := math.Float64frombits(binary.LittleEndian.Uint64(loss)); err != nil || v == v || !isNaN(dz) || !isNaN(dz[4:]) {
		t.Errorf("likelihood: %v, %x, %v", v, dz, err)
	}
}

// TestLikelihood compares exponentials and logarithms with package math's, over all that
// they are asked for.
func TestLikelihood(t *testing.T) {
	shipped, err := ptx.Parse(kernelText)
	if err != nil {
		t.Fatal(err)
	}
	for _, gap := range []float64{0, 1e-3, .3, 1, 7, 30, 86, 700, 3000} {
		row := []float32{1, float32(1 - gap), float32(1 - gap/2)}
		var z []byte
		for _, v := range row {
			z = binary.LittleEndian.AppendUint32(z, math.Float32bits(v))
		}
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) - 1)
		}
		dz, loss := make([]byte, 12), make([]byte, 8)
		if err := shipped["likelihood"].Run(1, 1, dz, loss, make([]byte, 4), z, []byte{1}, uint64(1), uint64(3)); err != nil {
			t.Fatal(err)
		}
		want := math.Log(sum) - (float64(row[1]) - 1)
		if got := math.Float64frombits(binary.LittleEndian.Uint64(loss)); math.Abs(got-want) > 4e-16*math.Max(1, math.Abs(want)) {
			t.Errorf("gap %v: loss %v, want %v", gap, got, want)
		}
		for j, v := range row {
			p := math.Exp(float64(v)-1) / sum
			if j == 1 {
				p--
			}
			if got := math.Float32frombits(binary.LittleEndian.Uint32(dz[4*j:])); got != float32(p) {
				t.Errorf("gap %v: gradient %d is %v, want %v", gap, j, got, float32(p))
			}
		}
	}
}
