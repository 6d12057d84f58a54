// What the sources of kernels have in common. They are compiled twice: clang makes PTX of
// them, and the fake driver of the tests includes them as plain C, with PEERMESH_HOST
// defined, and calls the kernels on the host.
//
// A launch is a row of threads, of which each takes the elements from START on, STRIDE
// apart, so that any number of threads does the work.

#pragma once

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
INLINE float32 root(float32 x) { return __builtin_sqrtf(x); }
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
INLINE float32 root(float32 x) {
	float32 y;
	asm("sqrt.rn.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
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
