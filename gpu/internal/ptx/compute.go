package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"peermesh/ops/tensor"
)

// size is the size of a type, as in u64.
func size(kind string) int {
	if kind == "pred" {
		return 1
	}
	n, _ := strconv.Atoi(kind[1:]) // a type that is none has no bits, and no instruction
	return n
}

// extend is the value of a type's bits, with their sign if it has one.
func extend(kind string, v uint64) uint64 {
	unused := 64 - size(kind)
	if kind[0] == 's' {
		return uint64(int64(v<<unused) >> unused)
	}
	return v << unused >> unused
}

// compute is an instruction that only computes. The last part of a name is its type.
func (t *thread) compute(name []string, v []uint64) uint64 {
	kind := name[len(name)-1]
	switch name[0] {
	case "mov", "cvta":
		return v[0]
	case "cvt":
		return convert(name[len(name)-2], kind, v[0])
	case "selp":
		if v[2] != 0 {
			return v[0]
		}
		return v[1]
	case "bfe":
		return v[0] >> v[1] & (1<<v[2] - 1)
	}
	for i := range v {
		v[i] = extend(kind, v[i])
	}
	if kind == "f32" || kind == "f64" {
		return t.float(name, kind, v)
	}
	if kind[0] == 's' {
		return t.integer(name, kind, int64(v[0]) < int64(v[1]), v, func() uint64 { return uint64(int64(v[0]) / int64(v[1])) })
	}
	return t.integer(name, kind, v[0] < v[1], v, func() uint64 { return v[0] / v[1] })
}

// convert is a number of one type in another.
func convert(to, from string, v uint64) uint64 {
	switch {
	case from == "f16":
		return uint64(math.Float32bits(tensor.F16(v).Float32()))
	case to == "f16":
		return uint64(tensor.ToF16(math.Float32frombits(uint32(v))))
	case from == "f32" && to == "f64":
		return math.Float64bits(float64(math.Float32frombits(uint32(v))))
	case from == "f64" && to == "f32":
		return uint64(math.Float32bits(float32(math.Float64frombits(v))))
	case from == "f64":
		return extend(to, uint64(int64(math.Float64frombits(v)))) // towards zero
	case to == "f64" && from[0] == 's':
		return math.Float64bits(float64(int64(extend(from, v))))
	case to == "f64":
		return math.Float64bits(float64(extend(from, v)))
	}
	return extend(to, extend(from, v))
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// integer is an instruction of integers, of which one may be less than the other.
func (t *thread) integer(name []string, kind string, less bool, v []uint64, quotient func() uint64) uint64 {
	var r uint64
	switch name[0] {
	case "setp":
		return t.compare(name[1], less, v[0] == v[1], false)
	case "mul":
		if name[1] == "wide" {
			return v[0] * v[1]
		}
		r = v[0] * v[1]
	case "mad":
		r = v[0]*v[1] + v[2]
	case "add":
		r = v[0] + v[1]
	case "sub":
		r = v[0] - v[1]
	case "div":
		r = quotient()
	case "and":
		r = v[0] & v[1]
	case "or":
		r = v[0] | v[1]
	case "xor":
		r = v[0] ^ v[1]
	case "shl":
		r = v[0] << v[1]
	case "shr":
		r = v[0] >> v[1]
	case "min", "max":
		r = v[1]
		if less == (name[0] == "min") {
			r = v[0]
		}
	default:
		t.failure = fmt.Errorf("instruction %v", name)
	}
	return extend(kind, r)
}

// compare is a comparison; not is set for what cannot be compared, which is true of one that
// ends in u.
func (t *thread) compare(how string, less, same, not bool) uint64 {
	if ordered, ok := strings.CutSuffix(how, "u"); ok {
		return t.compare(ordered, less, same, false) | truth(not)
	}
	switch how {
	case "lt":
		return truth(less)
	case "le":
		return truth(less || same)
	case "gt":
		return truth(!less && !same && !not)
	case "ge":
		return truth(!less && !not)
	case "eq":
		return truth(same)
	case "ne":
		return truth(!same && !not)
	case "nan":
		return truth(not)
	case "num":
		return truth(!not)
	}
	t.failure = fmt.Errorf("comparison %s", how)
	return 0
}

// float is an instruction of floats, which rounds once.
func (t *thread) float(name []string, kind string, v []uint64) uint64 {
	v = append(v, 0) // of those with one operand
	if kind == "f64" {
		a, b := math.Float64frombits(v[0]), math.Float64frombits(v[1])
		return float(t, name, a, b, math.Float64bits)
	}
	a, b := math.Float32frombits(uint32(v[0])), math.Float32frombits(uint32(v[1]))
	return float(t, name, a, b, func(r float32) uint64 { return uint64(math.Float32bits(r)) })
}

func float[T float32 | float64](t *thread, name []string, a, b T, bits func(T) uint64) uint64 {
	switch name[0] {
	case "setp":
		return t.compare(name[1], a < b, a == b, a != a || b != b)
	case "add":
		return bits(a + b)
	case "sub":
		return bits(a - b)
	case "mul":
		return bits(a * b)
	case "div":
		return bits(a / b)
	case "rcp":
		return bits(1 / a)
	case "sqrt":
		return bits(T(math.Sqrt(float64(a))))
	}
	t.failure = fmt.Errorf("instruction %v", name)
	return 0
}
