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
