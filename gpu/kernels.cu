// The arithmetic of package ops/tensor for a device: one kernel for each
// operation and element type, which are compiled twice. Clang makes kernels.ptx
// of them (see kernels.go), and the fake driver of the tests includes this file as
// plain C, with PEERMESH_HOST defined, and calls the kernels on the host.
//
// Every kernel has the same three parameters, so that there is one way to launch
// one: the destination, the other operand and the number of elements. A fold's
// operand is the address of as many elements; a step's is the bits of its number.

typedef signed char int8;
typedef unsigned char uint8, bool8;
typedef short int16;
typedef unsigned short uint16;
typedef int int32;
typedef unsigned int uint32;
typedef long int64;
typedef unsigned long uint64;
typedef float float32;
typedef double float64;

#ifdef PEERMESH_HOST

#define KERNEL __attribute__((visibility("default"))) void
#define INLINE static inline
static _Thread_local uint64 first, stride = 1; // which thread of a launch this is

INLINE float32 widen_float16(uint16 h) {
	_Float16 x;
	__builtin_memcpy(&x, &h, 2);
	return x;
}
INLINE uint16 narrow_float16(float32 f) {
	_Float16 x = f;
	uint16 h;
	__builtin_memcpy(&h, &x, 2);
	return h;
}
#define START first
#define STRIDE stride

#else

#define KERNEL extern "C" __attribute__((global)) void
#define INLINE static inline __attribute__((device))

INLINE float32 widen_float16(uint16 h) {
	float32 f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
	return f;
}
INLINE uint16 narrow_float16(float32 f) {
	uint16 h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}
#define START ((uint64)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x())
#define STRIDE ((uint64)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x())

#endif

INLINE uint32 bits(float32 f) {
	uint32 u;
	__builtin_memcpy(&u, &f, 4);
	return u;
}
INLINE float32 number(uint32 u) {
	float32 f;
	__builtin_memcpy(&f, &u, 4);
	return f;
}
INLINE float64 number64(uint64 u) {
	float64 f;
	__builtin_memcpy(&f, &u, 8);
	return f;
}

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
