// The arithmetic of package ops/tensor for a device: one kernel for each
// operation and element type. Clang makes kernels.ptx of them (see kernels.go).
//
// Every kernel has the same three parameters, so that there is one way to launch
// one: the destination, the other operand and the number of elements. A fold's
// operand is the address of as many elements; a step's is the bits of its number.

#include "kernel.h"

// The upper half of a float32, rounded to nearest even; a NaN stays one.
INLINE float32 widen_bfloat16(uint16 h) { return number((uint32)h << 16); }
INLINE uint16 narrow_bfloat16(float32 f) {
	uint32 u = bits(f);
	if (f != f)
		return u >> 16 | 0x40;
	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// An element as it lies in memory, and the type in which it is computed.
#define SAME(x) (x)
#define TRUTH(x) ((x) != 0)

// NaN wins and -0 orders before +0, which no comparison of floats says.
#define MINUS(x) __builtin_signbit(x)
#define LEAST(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) < (b) ? (a) : (b) < (a) ? (b) : MINUS(a) ? (a) : (b))
#define MOST(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) > (b) ? (a) : (b) > (a) ? (b) : MINUS(a) ? (b) : (a))

#define FOLD(op, name, T, C, widen, narrow, result) \
	KERNEL op##_##name(T *d, const T *s, uint64 n) { \
		for (uint64 i = START; i < n; i += STRIDE) { \
			C a = widen(d[i]), b = widen(s[i]); \
			d[i] = narrow(result); \
		} \
	}

#define STEP(op, name, T, C, widen, narrow, by, result) \
	KERNEL op##_##name(T *d, uint64 operand, uint64 n) { \
		for (uint64 i = START; i < n; i += STRIDE) { \
			C a = widen(d[i]), b = by(operand); \
			d[i] = narrow(result); \
		} \
	}

#define FLOATS(name, T, C, widen, narrow, by) \
	FOLD(sum, name, T, C, widen, narrow, a + b) \
	FOLD(product, name, T, C, widen, narrow, a * b) \
	FOLD(min, name, T, C, widen, narrow, LEAST(a, b)) \
	FOLD(max, name, T, C, widen, narrow, MOST(a, b)) \
	STEP(scale, name, T, C, widen, narrow, by, a * b) \
	STEP(divide, name, T, C, widen, narrow, by, a / b)

// Sums, products and bits are the same with a sign and without. They are computed in
// 64 bits, whose low ones are right for fewer, without a sign, so that they wrap.
#define WIDE(x) ((uint64)(x))
#define INTEGERS(name) \
	FOLD(sum, name, name, uint64, WIDE, SAME, a + b) \
	FOLD(product, name, name, uint64, WIDE, SAME, a * b) \
	FOLD(band, name, name, name, SAME, SAME, a & b) \
	FOLD(bor, name, name, name, SAME, SAME, a | b) \
	FOLD(bxor, name, name, name, SAME, SAME, a ^ b) \
	STEP(scale, name, name, uint64, WIDE, SAME, SAME, a * b)

// Order and quotients are not.
#define ORDER(name, W) \
	FOLD(min, name, name, name, SAME, SAME, a < b ? a : b) \
	FOLD(max, name, name, name, SAME, SAME, a < b ? b : a) \
	STEP(divide, name, name, W, SAME, SAME, SAME, a / b)

INLINE float32 low(uint64 operand) { return number((uint32)operand); }

FLOATS(float32, float32, float32, SAME, SAME, low)
FLOATS(float64, float64, float64, SAME, SAME, number64)
FLOATS(float16, uint16, float32, widen_float16, narrow_float16, low)
FLOATS(bfloat16, uint16, float32, widen_bfloat16, narrow_bfloat16, low)

INTEGERS(uint8)
INTEGERS(uint16)
INTEGERS(uint32)
INTEGERS(uint64)

ORDER(int8, int64)
ORDER(int16, int64)
ORDER(int32, int64)
ORDER(int64, int64)
ORDER(uint8, uint64)
ORDER(uint16, uint64)
ORDER(uint32, uint64)
ORDER(uint64, uint64)

FOLD(band, bool, bool8, uint8, TRUTH, SAME, a & b)
FOLD(bor, bool, bool8, uint8, TRUTH, SAME, a | b)
FOLD(bxor, bool, bool8, uint8, TRUTH, SAME, a ^ b)
