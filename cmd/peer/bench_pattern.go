package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"peermesh/ops/tensor"
)

// A benchType is an element type, and how it writes a small whole number.
type benchType struct {
	dtype tensor.DType
	of    func(v int) any
}

func (t benchType) String() string { return t.dtype.String() }

// benchTypes are the types that can be added up.
var benchTypes = []benchType{
	{tensor.Float32, func(v int) any { return float32(v) }},
	{tensor.Float64, func(v int) any { return float64(v) }},
	{tensor.Float16, func(v int) any { return tensor.ToF16(float32(v)) }},
	{tensor.BFloat16, func(v int) any { return tensor.ToBF16(float32(v)) }},
	{tensor.Int8, func(v int) any { return int8(v) }},
	{tensor.Int16, func(v int) any { return int16(v) }},
	{tensor.Int32, func(v int) any { return int32(v) }},
	{tensor.Int64, func(v int) any { return int64(v) }},
	{tensor.Uint8, func(v int) any { return uint8(v) }},
	{tensor.Uint16, func(v int) any { return uint16(v) }},
	{tensor.Uint32, func(v int) any { return uint32(v) }},
	{tensor.Uint64, func(v int) any { return uint64(v) }},
}

// period is after how many elements a pattern begins anew: a prime, so that nothing
// that is off by a power of two looks right.
const period = 61

// A pattern is one period's bytes. Checks compare bytes, so they are exact: what is
// added up are zeros and ones, whose sums every type holds for as many ranks as
// there can be (bfloat16 up to 256; small integers wrap around, as their sums do).
type pattern []byte

// pattern writes a function of an element's place.
func (t benchType) pattern(at func(i int) int) pattern {
	var p pattern
	for i := range period {
		var err error
		if p, err = binary.Append(p, binary.NativeEndian, t.of(at(i))); err != nil {
			panic(fmt.Sprintf("peer: writing a %v: %v", t, err)) // all of the above have a size
		}
	}
	return p
}

// moved is the pattern of what is only moved, another for each of 61 sources.
func (t benchType) moved(source int) pattern {
	return t.pattern(func(i int) int { return 1 + (7*source+13*i)%period })
}

// bit is what a rank adds at a place: 0 or 1, as if tossed.
func bit(rank, i int) int { return int(uint32(rank+1)*uint32(i+3)*2654435761>>13) & 1 }

// added is a rank's pattern of what is added up, and sum that of the result of n
// ranks from the first.
func (t benchType) added(rank int) pattern { return t.sum(rank, 1) }

func (t benchType) sum(first, n int) pattern {
	return t.pattern(func(i int) (v int) {
		for rank := first; rank < first+n; rank++ {
			v += bit(rank, i)
		}
		return v
	})
}

// bytesOf are a tensor's own bytes; the benchmark's tensors are all in host memory.
func bytesOf(x tensor.Tensor) []byte {
	b, _ := x.View(0, x.Bytes())
	return b
}

// fill repeats the pattern all over a tensor.
func (p pattern) fill(x tensor.Tensor) {
	b := bytesOf(x)
	for done := copy(b, p); done < len(b); {
		done += copy(b[done:], b[:done]) // doubling
	}
}

// fills reports whether the tensor is what fill makes of it.
func (p pattern) fills(x tensor.Tensor) bool {
	for b := bytesOf(x); len(b) > 0; {
		n := min(len(p), len(b))
		if !bytes.Equal(b[:n], p[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}
