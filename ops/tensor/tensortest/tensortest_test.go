package tensortest

import (
	"bytes"
	"io"
	"math"
	"testing"

	"peermesh/ops/tensor"
)

func TestHost(t *testing.T) {
	TestMemory(t, func(n int) tensor.Memory { return make(tensor.Host, n) })
}

// A faulty memory is the host's with one call replaced.
type faulty struct {
	tensor.Host
	read   func(h tensor.Host, p []byte, off int64) (int, error)
	write  func(h tensor.Host, p []byte, off int64) (int, error)
	reduce func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error
	view   func(h tensor.Host, off, n int64) []byte
}

func (f faulty) ReadAt(p []byte, off int64) (int, error) {
	if f.read != nil {
		return f.read(f.Host, p, off)
	}
	return f.Host.ReadAt(p, off)
}

func (f faulty) WriteAt(p []byte, off int64) (int, error) {
	if f.write != nil {
		return f.write(f.Host, p, off)
	}
	return f.Host.WriteAt(p, off)
}

func (f faulty) ReduceAt(p []byte, off int64, t tensor.DType, op tensor.Op) error {
	if f.reduce != nil {
		return f.reduce(f.Host, p, off, t, op)
	}
	return f.Host.ReduceAt(p, off, t, op)
}

func (f faulty) View(off, n int64) []byte {
	if f.view != nil {
		return f.view(f.Host, off, n)
	}
	return f.Host.View(off, n)
}

// TestFaults puts faults into a memory and expects the check that looks for
// each to find it: a suite that passes everything would prove nothing.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		check func(tensor.Memory) error
		fault faulty
	}{
		"reads what is there of a range": {checkOutOfRange, faulty{
			read: func(h tensor.Host, p []byte, off int64) (int, error) {
				if off < 0 || off > int64(len(h)) {
					return 0, io.EOF
				}
				n := copy(p, h[off:])
				if n < len(p) {
					return n, io.EOF
				}
				return n, nil
			}}},
		"writes what fits of a range": {checkOutOfRange, faulty{
			write: func(h tensor.Host, p []byte, off int64) (int, error) {
				if off >= 0 && off < int64(len(h)) && copy(h[off:], p) < len(p) {
					return 0, io.ErrShortWrite
				}
				return h.WriteAt(p, off)
			}}},
		"writes whole words": {checkReadWrite, faulty{
			write: func(h tensor.Host, p []byte, off int64) (int, error) {
				n, err := h.WriteAt(p, off)
				if end := int(off) + n; err == nil && n%4 != 0 && end < len(h) {
					h[end] = 0
				}
				return n, err
			}}},
		"counts no bytes": {checkReadWrite, faulty{
			write: func(h tensor.Host, p []byte, off int64) (int, error) {
				_, err := h.WriteAt(p, off)
				return 0, err
			}}},
		"fails on nothing": {checkEmpty, faulty{
			read: func(h tensor.Host, p []byte, off int64) (int, error) {
				if off == int64(len(h)) {
					return 0, io.EOF
				}
				return h.ReadAt(p, off)
			}}},
		"sums only": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, _ tensor.Op) error {
				return h.ReduceAt(p, off, t, tensor.Sum)
			}}},
		"drops the tail": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				return h.ReduceAt(p[:len(p)/t.Size()/4*4*t.Size()], off, t, op)
			}}},
		"trusts bools": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				if t == tensor.Bool && op == tensor.BitOr {
					t = tensor.Uint8
				}
				return h.ReduceAt(p, off, t, op)
			}}},
		"takes halves for integers": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				if t == tensor.BFloat16 && op == tensor.Max {
					t = tensor.Int16
				}
				return h.ReduceAt(p, off, t, op)
			}}},
		"orders unsigned as signed": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				if t == tensor.Uint64 {
					t = tensor.Int64
				}
				return h.ReduceAt(p, off, t, op)
			}}},
		"views a copy, so steps are lost": {checkSteps, faulty{
			view: func(h tensor.Host, off, n int64) []byte { return bytes.Clone(h.View(off, n)) }}},
		"refuses a function halfway": {checkFunc, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				if err := h.ReduceAt(p[:4], off, t, op); err != nil {
					return err
				}
				return io.ErrUnexpectedEOF
			}}},
		"sums for a function": {checkFunc, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				return h.ReduceAt(p, off, t, tensor.Sum)
			}}},
		"swaps two bytes": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				p = bytes.Clone(p)
				if len(p) > t.Size() {
					p[0], p[1] = p[1], p[0]
				}
				return h.ReduceAt(p, off, t, op)
			}}},
		"keeps sums in the message": {checkReduce, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				err := h.ReduceAt(p, off, t, op)
				copy(p, h[off:])
				return err
			}}},
		"takes any arguments": {checkArguments, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				return nil
			}}},
		"folds into the first lane": {checkDisjoint, faulty{
			reduce: func(h tensor.Host, p []byte, off int64, t tensor.DType, op tensor.Op) error {
				if off > 0 {
					return nil
				}
				return h.ReduceAt(p, off, t, op)
			}}},
		"views a copy": {checkView, faulty{
			view: func(h tensor.Host, off, n int64) []byte { return bytes.Clone(h.View(off, n)) }}},
		"views too much": {checkView, faulty{
			view: func(h tensor.Host, off, n int64) []byte {
				if h.View(off, n) == nil {
					return nil
				}
				return h[off : off+n]
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault.Host = make(tensor.Host, size)
			if err := c.check(c.fault); err == nil {
				t.Error("the check found nothing")
			} else {
				t.Log(err)
			}
		})
	}
}

// TestReduce pins the reference itself on values worked out by hand.
func TestReduce(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	negative := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		op       tensor.Op
		dst, src tensor.Tensor
		want     tensor.Tensor
	}{
		{tensor.Sum, tensor.Of([]uint8{250, 1}), tensor.Of([]uint8{10, 2}), tensor.Of([]uint8{4, 3})},
		{tensor.Product, tensor.Of([]uint8{16, 3}), tensor.Of([]uint8{17, 5}), tensor.Of([]uint8{16, 15})},
		{tensor.Max, tensor.Of([]uint8{128, 3}), tensor.Of([]uint8{127, 5}), tensor.Of([]uint8{128, 5})},
		{tensor.Sum, tensor.Of([]int32{math.MaxInt32}), tensor.Of([]int32{1}), tensor.Of([]int32{math.MinInt32})},
		{tensor.Min, tensor.Of([]int32{-1}), tensor.Of([]int32{1}), tensor.Of([]int32{-1})},
		{tensor.Product, tensor.Of([]int64{math.MaxInt64}), tensor.Of([]int64{2}), tensor.Of([]int64{-2})},
		{tensor.Sum, tensor.Of([]float32{1 << 24}), tensor.Of([]float32{1}), tensor.Of([]float32{1 << 24})},
		{tensor.Min, tensor.Of([]float32{nan, 1, 0}), tensor.Of([]float32{-inf, nan, negative}), tensor.Of([]float32{nan, nan, negative})},
		{tensor.Max, tensor.Of([]float32{nan, 1, negative}), tensor.Of([]float32{inf, nan, 0}), tensor.Of([]float32{nan, nan, 0})},
		{tensor.Sum, tensor.Of([]float64{.1}), tensor.Of([]float64{.2}), tensor.Of([]float64{.30000000000000004})},
		{tensor.Sum, tensor.Of([]tensor.F16{0x3c00, 0x7bff, 1, 0x6800}), tensor.Of([]tensor.F16{0x3c00, 0x4c00, 1, 0x3c00}), tensor.Of([]tensor.F16{0x4000, 0x7c00, 2, 0x6800})},
		{tensor.Product, tensor.Of([]tensor.F16{0xc000, 0x0400}), tensor.Of([]tensor.F16{0x4200, 0x3800}), tensor.Of([]tensor.F16{0xc600, 0x0200})},
		{tensor.Sum, tensor.Of([]tensor.BF16{0x3f80, 0x7f7f, 0x4380}), tensor.Of([]tensor.BF16{0x3f80, 0x7f7f, 0x3f80}), tensor.Of([]tensor.BF16{0x4000, 0x7f80, 0x4380})},
		{tensor.Max, tensor.Of([]tensor.BF16{0x7fc0, 0x8000}), tensor.Of([]tensor.BF16{0x7f80, 0}), tensor.Of([]tensor.BF16{0x7fc0, 0})},
		{tensor.Max, tensor.Of([]uint64{1 << 63, 1}), tensor.Of([]uint64{1, 1 << 63}), tensor.Of([]uint64{1 << 63, 1 << 63})},
		{tensor.Min, tensor.Of([]int8{-128}), tensor.Of([]int8{127}), tensor.Of([]int8{-128})},
		{tensor.Avg, tensor.Of([]int16{math.MinInt16}), tensor.Of([]int16{-1}), tensor.Of([]int16{math.MaxInt16})},
		{tensor.PremulSum(2), tensor.Of([]uint16{65535}), tensor.Of([]uint16{2}), tensor.Of([]uint16{1})},
		{tensor.BitAnd, tensor.Of([]uint32{12}), tensor.Of([]uint32{10}), tensor.Of([]uint32{8})},
		{tensor.BitOr, tensor.Of([]uint32{12}), tensor.Of([]uint32{10}), tensor.Of([]uint32{14})},
		{tensor.BitXor, tensor.Of([]uint32{12}), tensor.Of([]uint32{10}), tensor.Of([]uint32{6})},
		{tensor.Sum, tensor.Of([]bool{false, false, true}), tensor.Of([]bool{false, true, true}), tensor.Of([]bool{false, true, true})},
		{tensor.Min, tensor.Of([]bool{false, false, true}), tensor.Of([]bool{false, true, true}), tensor.Of([]bool{false, false, true})},
		{tensor.BitXor, tensor.Of([]bool{false, false, true}), tensor.Of([]bool{false, true, true}), tensor.Of([]bool{false, true, false})},
	} {
		dst, _ := c.dst.View(0, c.dst.Bytes())
		src, _ := c.src.View(0, c.src.Bytes())
		want, _ := c.want.View(0, c.want.Bytes())
		Reduce(dst, src, c.dst.DType(), c.op)
		if !Equal(dst, want, c.dst.DType()) {
			t.Errorf("%v %v: %x, want %x", c.dst, c.op, dst, want)
		}
	}
	if Equal([]byte{0, 0, 0, 0}, []byte{0, 0, 0, 0x80}, tensor.Float32) {
		t.Error("+0 and -0 pass for equal")
	}
	if Equal([]byte{0}, nil, tensor.Uint8) {
		t.Error("different lengths pass for equal")
	}
}

// TestSteps pins the references of the steps.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		step    func(p []byte, t tensor.DType)
		x, want tensor.Tensor
	}{
		{scaled(3), tensor.Of([]int8{-1, 100}), tensor.Of([]int8{-3, 44})},
		{scaled(.5), tensor.Of([]float64{3}), tensor.Of([]float64{1.5})},
		{scaled(.1), tensor.Of([]float32{3}), tensor.Of([]float32{.3})},
		{scaled(.5), tensor.Of([]tensor.F16{1, 3}), tensor.Of([]tensor.F16{0, 2})},
		{divided(2), tensor.Of([]int64{-3, 3}), tensor.Of([]int64{-1, 1})},
		{divided(300), tensor.Of([]uint8{255}), tensor.Of([]uint8{0})},
		{divided(2), tensor.Of([]uint64{math.MaxUint64}), tensor.Of([]uint64{math.MaxInt64})},
		{divided(3), tensor.Of([]tensor.BF16{0x3f80}), tensor.Of([]tensor.BF16{0x3eab})},
	} {
		p, _ := c.x.View(0, c.x.Bytes())
		want, _ := c.want.View(0, c.want.Bytes())
		c.step(p, c.x.DType())
		if !Equal(p, want, c.x.DType()) {
			t.Errorf("%v: %x, want %x", c.x, p, want)
		}
	}
}

func scaled(factor float64) func([]byte, tensor.DType) {
	return func(p []byte, t tensor.DType) { Scale(p, t, factor) }
}

func divided(n int) func([]byte, tensor.DType) {
	return func(p []byte, t tensor.DType) { Divide(p, t, n) }
}
