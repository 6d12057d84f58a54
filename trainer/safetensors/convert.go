package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

var le = binary.LittleEndian

// A float is how elements of a type become float64 and come from it. Every float of the
// format is exact as a float64. Into a shorter one, put rounds once from a float32, and
// twice from a float64: PyTorch's Tensor.to rounds by way of float32, and the same file is
// to give the same bits here.
type float struct {
	get func(p []byte) float64
	put func(p []byte, x float64)
}

var floats = map[tensor.DType]float{
	tensor.Float64: {
		func(p []byte) float64 { return math.Float64frombits(le.Uint64(p)) },
		func(p []byte, x float64) { le.PutUint64(p, math.Float64bits(x)) },
	},
	tensor.Float32: {
		func(p []byte) float64 { return float64(math.Float32frombits(le.Uint32(p))) },
		func(p []byte, x float64) { le.PutUint32(p, math.Float32bits(float32(x))) },
	},
	tensor.Float16: {
		func(p []byte) float64 { return float64(tensor.F16(le.Uint16(p)).Float32()) },
		func(p []byte, x float64) { le.PutUint16(p, uint16(tensor.ToF16(float32(x)))) },
	},
	tensor.BFloat16: {
		func(p []byte) float64 { return float64(tensor.BF16(le.Uint16(p)).Float32()) },
		func(p []byte, x float64) { le.PutUint16(p, uint16(tensor.ToBF16(float32(x)))) },
	},
}

// An integer is how elements of a type become int64 and come from it, and the range
// of those that can. Bytes are little-endian in a file, so none depends on the host's order.
// Of uint64, the upper half cannot: get of it is negative.
type integer struct {
	get      func(p []byte) int64
	put      func(p []byte, x int64) // nil: nothing but the type itself becomes it
	min, max int64
}

var integers = map[tensor.DType]integer{
	tensor.Int8: {
		func(p []byte) int64 { return int64(int8(p[0])) },
		func(p []byte, x int64) { p[0] = byte(x) }, math.MinInt8, math.MaxInt8,
	},
	tensor.Uint8: {
		func(p []byte) int64 { return int64(p[0]) },
		func(p []byte, x int64) { p[0] = byte(x) }, 0, math.MaxUint8,
	},
	tensor.Int16: {
		func(p []byte) int64 { return int64(int16(le.Uint16(p))) },
		func(p []byte, x int64) { le.PutUint16(p, uint16(x)) }, math.MinInt16, math.MaxInt16,
	},
	tensor.Uint16: {
		func(p []byte) int64 { return int64(le.Uint16(p)) },
		func(p []byte, x int64) { le.PutUint16(p, uint16(x)) }, 0, math.MaxUint16,
	},
	tensor.Int32: {
		func(p []byte) int64 { return int64(int32(le.Uint32(p))) },
		func(p []byte, x int64) { le.PutUint32(p, uint32(x)) }, math.MinInt32, math.MaxInt32,
	},
	tensor.Uint32: {
		func(p []byte) int64 { return int64(le.Uint32(p)) },
		func(p []byte, x int64) { le.PutUint32(p, uint32(x)) }, 0, math.MaxUint32,
	},
	tensor.Int64: {
		func(p []byte) int64 { return int64(le.Uint64(p)) },
		func(p []byte, x int64) { le.PutUint64(p, uint64(x)) }, math.MinInt64, math.MaxInt64,
	},
	tensor.Uint64: {
		func(p []byte) int64 { return int64(le.Uint64(p)) },
		func(p []byte, x int64) { le.PutUint64(p, uint64(x)) }, 0, math.MaxInt64,
	},
	// Any byte but 0 is true, as in C; no integer becomes a bool, for which would be true?
	tensor.Bool: {get: func(p []byte) int64 {
		if p[0] != 0 {
			return 1
		}
		return 0
	}},
}

// convertible says why elements of type from cannot become elements of type to. Floats come
// from everything, as a model has floats whatever a file has them in; an integer, such as a
// count of batches, never comes from a float, as where that has a fraction the file is another
// model's.
func convertible(to, from tensor.DType) error {
	_, fromInteger := integers[from]
	if _, ok := floats[to]; ok || to == from || fromInteger && integers[to].put != nil {
		return nil
	}
	return fmt.Errorf("its elements are %v in the file, which do not become %v", from, to)
}

// convert makes of the elements in src as many in dst, of two types that are
// convertible and not the same. It fails at an integer that does not fit.
func convert(dst []byte, to tensor.DType, src []byte, from tensor.DType) error {
	a, b := from.Size(), to.Size()
	f, toFloat := floats[to]
	if g, ok := floats[from]; ok {
		for ; len(src) > 0; dst, src = dst[b:], src[a:] {
			f.put(dst, g.get(src))
		}
		return nil
	}
	get := integers[from].get
	if toFloat { // the nearest: above 2⁵³, and 2²⁴ of a float32, not every integer is one
		for ; len(src) > 0; dst, src = dst[b:], src[a:] {
			x := float64(get(src))
			if from == tensor.Uint64 { // above an int64's largest, too
				x = float64(le.Uint64(src))
			}
			f.put(dst, x)
		}
		return nil
	}
	t := integers[to]
	for ; len(src) > 0; dst, src = dst[b:], src[a:] {
		x := get(src)
		if x < t.min || x > t.max || from == tensor.Uint64 && x < 0 {
			return fmt.Errorf("%d of type %v does not fit %v", x, from, to)
		}
		t.put(dst, x)
	}
	return nil
}
