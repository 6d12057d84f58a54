package simd

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// usable skips tests of assembly where there is none.
func usable(t *testing.T) {
	t.Helper()
	if !available {
		t.Skip("no kernels for this processor and build")
	}
}

// A reference is a kernel's operation, element by element.
type reference struct {
	name   string
	kernel Kernel
	fold   func(dst, src []byte)
}

// by is the reference by a function of two elements.
func by[T any](f func(a, b T) T) func(dst, src []byte) {
	return func(dst, src []byte) {
		var d, s T
		size := int(unsafe.Sizeof(d))
		for i := 0; i < len(dst); i += size {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&d)), size), dst[i:])
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&s)), size), src[i:])
			d = f(d, s)
			copy(dst[i:], unsafe.Slice((*byte)(unsafe.Pointer(&d)), size))
		}
	}
}

func floats[T float32 | float64](name string, k Kernels) []reference {
	return []reference{
		{name + " sum", k.Sum, by(func(a, b T) T { return a + b })},
		{name + " product", k.Product, by(func(a, b T) T { return a * b })},
		{name + " min", k.Min, by(func(a, b T) T { return min(a, b) })},
		{name + " max", k.Max, by(func(a, b T) T { return max(a, b) })},
		{name + " quotient", k.Quotient, by(func(a, b T) T { return a / b })},
		{name + " residual", k.Residual, by(residual[T])},
	}
}

func residual[T float32 | float64](a, b T) T {
	if d := float64(b - a); math.IsNaN(d) || math.IsInf(d, 0) {
		return 0
	}
	return b - a
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](name string, k Kernels) []reference {
	return []reference{
		{name + " sum", k.Sum, by(func(a, b T) T { return a + b })},
		{name + " product", k.Product, by(func(a, b T) T { return a * b })},
		{name + " min", k.Min, by(func(a, b T) T { return min(a, b) })},
		{name + " max", k.Max, by(func(a, b T) T { return max(a, b) })},
		{name + " and", k.And, by(func(a, b T) T { return a & b })},
		{name + " or", k.Or, by(func(a, b T) T { return a | b })},
		{name + " xor", k.Xor, by(func(a, b T) T { return a ^ b })},
	}
}

// bfloat16s widen by a shift; the quotient of a float64 by a power of two counts
// in units of the last place, which rounding makes whole.
func bfloat16s(k Kernels) []reference {
	lift := func(f func(a, b float32) float32) func(dst, src []byte) {
		return by(func(a, b uint16) uint16 {
			c := f(math.Float32frombits(uint32(a)<<16), math.Float32frombits(uint32(b)<<16))
			n := math.Float32bits(c)
			if c != c {
				return uint16(n>>16 | 0x40)
			}
			return uint16(math.RoundToEven(float64(n&0x7fffffff)/(1<<16))) | uint16(n>>16&0x8000)
		})
	}
	return []reference{
		{"bfloat16 sum", k.Sum, lift(func(a, b float32) float32 { return a + b })},
		{"bfloat16 product", k.Product, lift(func(a, b float32) float32 { return a * b })},
		{"bfloat16 min", k.Min, lift(func(a, b float32) float32 { return min(a, b) })},
		{"bfloat16 max", k.Max, lift(func(a, b float32) float32 { return max(a, b) })},
		{"bfloat16 quotient", k.Quotient, lift(func(a, b float32) float32 { return a / b })},
	}
}

func bools(k Kernels) []reference {
	lift := func(f func(a, b bool) bool) func(dst, src []byte) {
		return by(func(a, b uint8) uint8 {
			if f(a != 0, b != 0) {
				return 1
			}
			return 0
		})
	}
	return []reference{
		{"bool and", k.And, lift(func(a, b bool) bool { return a && b })},
		{"bool or", k.Or, lift(func(a, b bool) bool { return a || b })},
		{"bool xor", k.Xor, lift(func(a, b bool) bool { return a != b })},
	}
}

// references has all kernels but float16's, whose rounding takes more than a line:
// the package above compares them, with every pattern.
func references() []reference {
	var all []reference
	for _, some := range [][]reference{
		floats[float32]("float32", Float32), floats[float64]("float64", Float64),
		integers[int8]("int8", Int8), integers[int16]("int16", Int16),
		integers[int32]("int32", Int32), integers[int64]("int64", Int64),
		integers[uint8]("uint8", Uint8), integers[uint16]("uint16", Uint16),
		integers[uint32]("uint32", Uint32), integers[uint64]("uint64", Uint64),
		bfloat16s(BFloat16), bools(Bool),
	} {
		all = append(all, some...)
	}
	return all
}

// TestFold compares whole and broken blocks, of finite numbers for the most part:
// a sum of any two patterns is one of NaNs once in a hundred thousand.
func TestFold(t *testing.T) {
	usable(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, ref := range references() {
		for n := 0; n <= 40*8; n += 8 {
			for at := range 4 {
				d, s := noise(r, at+n+block)[at:], noise(r, n+1)[1:]
				want := bytes.Clone(d)
				ref.fold(want[:n], s)
				ref.kernel.Fold(d[:n], s)
				if !bytes.Equal(d, want) {
					t.Fatalf("%s of %d bytes:\n got %x\nwant %x", ref.name, n, d, want)
				}
			}
		}
	}
}

func noise(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// TestFoldTwoNaNs: the first one remains, quiet after arithmetic; min and max mix
// them.
func TestFoldTwoNaNs(t *testing.T) {
	usable(t)
	const a, b = 0x7f800001, 0xffc00002
	for k, want := range map[Kernel]uint32{
		Float32.Sum: a | 1<<22, Float32.Product: a | 1<<22, Float32.Quotient: a | 1<<22,
		Float32.Min: a | b, Float32.Max: a | b&^(1<<31),
	} {
		d := binary.LittleEndian.AppendUint32(nil, a)
		k.Fold(d, binary.LittleEndian.AppendUint32(nil, b))
		if got := binary.LittleEndian.Uint32(d); got != want {
			t.Errorf("kernel %d: %#x, want %#x", k, got, want)
		}
	}
}

// TestFoldFloat16 pins one of each kind: exact, a tie to even either way, more
// than the greatest, subnormal.
func TestFoldFloat16(t *testing.T) {
	usable(t)
	for _, c := range []struct {
		k          Kernel
		a, b, want uint16
	}{
		{Float16.Sum, 0x3c00, 0x3c00, 0x4000},      // 1 + 1
		{Float16.Sum, 0x6800, 0x3c00, 0x6800},      // 2048 + 1, a tie
		{Float16.Sum, 0x6801, 0x3c00, 0x6802},      // 2050 + 1
		{Float16.Sum, 0x7bff, 0x4c00, 0x7c00},      // 65504 + 16
		{Float16.Sum, 0x0001, 0x0001, 0x0002},      // 2⁻²⁴ + 2⁻²⁴
		{Float16.Product, 0x4200, 0xc500, 0xcb80},  // 3 · -5
		{Float16.Product, 0x0001, 0x3800, 0x0000},  // 2⁻²⁴ · ½, a tie
		{Float16.Quotient, 0x3c00, 0x4200, 0x3555}, // 1 / 3
		{Float16.Min, 0x0000, 0x8000, 0x8000},
		{Float16.Max, 0x8000, 0x0000, 0x0000},
		{Float16.Max, 0x7c00, 0xfc01, 0x7e01}, // ∞ and a signaling NaN
	} {
		d, s := []byte{byte(c.a), byte(c.a >> 8)}, []byte{byte(c.b), byte(c.b >> 8)}
		c.k.Fold(d, s)
		if got := uint16(d[0]) | uint16(d[1])<<8; got != c.want {
			t.Errorf("kernel %d of %#x and %#x: %#x, want %#x", c.k, c.a, c.b, got, c.want)
		}
	}
}

// TestFoldItself: the operands may be the same memory.
func TestFoldItself(t *testing.T) {
	usable(t)
	for n := range 300 {
		p := bytes.Repeat([]byte{3}, n)
		Uint8.Sum.Fold(p, p)
		if !bytes.Equal(p, bytes.Repeat([]byte{6}, n)) {
			t.Fatalf("%d bytes: %x", n, p)
		}
	}
}

func TestFoldEach(t *testing.T) {
	usable(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 8, 16, 40, run - 8, run, run + 8, 5*run + 16} {
		d := noise(r, n)
		x := noise(r, 8)
		want := bytes.Clone(d)
		Uint64.Product.Fold(want, bytes.Repeat(x, n/8))
		Uint64.Product.FoldEach(d, x)
		if !bytes.Equal(d, want) {
			t.Errorf("%d bytes: %x, want %x", n, d, want)
		}
	}
}

func TestFoldShortSource(t *testing.T) {
	usable(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Uint8.Sum.Fold(make([]byte, 64), make([]byte, 63))
}

func TestFoldDoesNotAllocate(t *testing.T) {
	usable(t)
	p := make([]byte, 100)
	if n := testing.AllocsPerRun(10, func() {
		Float32.Sum.Fold(p, p)
		Float32.Sum.FoldEach(p, p[:4])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
