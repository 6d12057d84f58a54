package gpu

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// gateText is a kernel's declaration: all that the fake driver reads of a text.
const gateText = "// a text\n.version 6.0\n.visible .entry gate(\n\t.param .u64 gate_param_0,\n\t.param .u64 gate_param_1,\n\t.param .u32 gate_param_2,\n\t.param .u32 gate_param_3\n)\n"

// gated is a module with its kernel.
func gated(t *testing.T, d *Device) (*Module, *Kernel) {
	t.Helper()
	m, err := d.Load(gateText)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("gate")
	if err != nil {
		t.Fatal(err)
	}
	return m, k
}

// TestLaunch runs a kernel of a program's own, two of whose arguments lie in one memory,
// from an offset on.
func TestLaunch(t *testing.T) {
	d := opened(t, Config{})
	m, k := gated(t, d)
	s, x := streamed(t, d), allocated(t, d, 48)
	numbers := make([]byte, 48)
	for i, v := range []float32{9, 1, 2, 3, 9, 9, 9, 1, 0, -1, 9, 9} {
		binary.LittleEndian.PutUint32(numbers[4*i:], math.Float32bits(v))
	}
	_, err := x.WriteAt(numbers, 0)
	err = errors.Join(err, s.Launch(k, 3, At(x, 4), At(x, 28), Uint32(3), Float32(2)), s.Launch(k, 0), x.After(s))
	if _, e := x.ReadAt(numbers, 0); errors.Join(err, e) != nil {
		t.Fatal(err, e)
	}
	for i, want := range []float32{9, 2, 0, 6, 9} {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(numbers[4*i:])); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	if got := strings.Join(d.Leaks(), ", "); got != "48 bytes of device memory, a module, a stream" {
		t.Errorf("leaks: %s", got)
	}
	if err := errors.Join(m.Close(), m.Close(), (*Module)(nil).Close()); err != nil {
		t.Error(err)
	}
}

// TestLaunchRefused has what cannot be launched, and why.
func TestLaunchRefused(t *testing.T) {
	d := opened(t, Config{})
	m, k := gated(t, d)
	s, x, gone := streamed(t, d), allocated(t, d, 8), allocated(t, d, 8)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for words, err := range map[string]error{
		"kernel gate: 13 arguments, 1 elements": s.Launch(k, 1, make([]Argument, 13)...),
		"kernel gate: 0 arguments, -1 elements": s.Launch(k, -1),
		"kernel gate: gpu: closed":              s.Launch(k, 1, At(x, 0), At(gone, 0)),
		"kernel gate: tensor: ":                 s.Launch(k, 1, At(x, 9)),
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	for _, c := range []struct {
		function, words string
		call            func() error
	}{
		{"cuLaunchKernel", "gpu: cuLaunchKernel: kernel gate over 2 elements: ", func() error { return s.Launch(k, 2, At(x, 0), At(x, 0), Uint32(2), Float32(1)) }},
		{"cuModuleGetFunction", "gpu: cuModuleGetFunction: kernel gate: ", func() error { _, err := m.Kernel("gate"); return err }},
		{"cuModuleLoadData", "gpu: cuModuleLoadData: ", func() error { _, err := d.Load(gateText); return err }},
	} {
		fail(t, EnvCUDA, c.function, 1, 1)
		if err := c.call(); err == nil || !strings.HasPrefix(err.Error(), c.words) {
			t.Errorf("%s fails: %v", c.function, err)
		}
	}
	if _, err := m.Kernel("none"); err == nil || !strings.Contains(err.Error(), "kernel none") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	if _, err := d.Load("no PTX"); err == nil {
		t.Error("a text that is none is loaded")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := m.Kernel("gate")
	for i, err := range []error{err, s.Launch(k, 1)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
}

// TestPart copies a part of pinned memory both ways, and no more than there is.
func TestPart(t *testing.T) {
	d := opened(t, Config{})
	s, p, m := streamed(t, d), pinnedBytes(t, d, 4), allocated(t, d, 8)
	copy(p.Bytes(), []byte{1, 2, 3, 4})
	err := errors.Join(s.ToDeviceN(m, 5, p, 2), s.ToDeviceN(m, 0, p, 0), s.ToHostN(p, m, 4, 3), s.Sync())
	if got := p.Bytes(); err != nil || string(got) != "\x00\x01\x02\x04" {
		t.Errorf("%v, %v", got, err)
	}
	for _, err := range []error{s.ToDeviceN(m, 0, p, 5), s.ToHostN(p, m, 0, -1), s.ToHostN(p, m, 6, 3)} {
		if err == nil {
			t.Error("a copy from beyond memory, or to there")
		}
	}
}
