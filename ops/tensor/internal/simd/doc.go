// Package simd folds one array of elements into another with the vector
// instructions of the processor: AVX2, and F16C for float16, on amd64.
//
//	if k := simd.Float16.Sum; k.Usable() {
//		k.Fold(dst, src) // dst[i] += src[i]
//	}
//
// Each element type has its [Kernels]. Whether one can be used is known when the
// program runs ([Kernel.Usable]); the caller has a portable loop for the rest, and
// gives the zero Kernels where he wants that one alone. Elsewhere than on amd64,
// and with the build tag purego, none can.
//
// # Bytes
//
// Both operands are bytes of any length at any address, so a message is folded
// from the buffer in which it was received. Assembly sees whole blocks of 32
// bytes and nothing else; [Kernel.Fold] checks bounds, and carries what is left at
// the end through a block of its own. No byte outside of the operands is read or
// written.
//
// # Bits
//
// The results are those of Go's operators and of its min and max on amd64, bit for
// bit: integers wrap, a float is rounded once to nearest, ties to even, and of a
// NaN and a number the NaN remains, made quiet by sums, products and quotients. Of
// two NaNs they keep the first. Min and max keep the NaN's bits, or'ed with the
// other operand's (max: the sign and'ed), which is what the compiler emits and
// makes them commute.
//
// The half types widen to float32, compute and round. For float16 both are
// instructions. A bfloat16 is widened by a shift, and rounded by adding just less
// than half of its last place, plus that place's bit, so that what is more than
// half, or half of an odd number, carries. All that come out of them are quiet.
//
// # Adding a kernel
//
// A number in kernel.go, its place in the type's Kernels, and a line at the end of
// simd_amd64.s: how to take a block apart, and what to do with a pair of vectors.
// The loop around them is written once.
//
// # Speed
//
// On one core of a server of 2024, in GB/s of one operand that begins off
// alignment: floats and integers 64 while both operands are in the second-level
// cache, 30 in the third, 13 from memory, which are the limits there; the half
// types' sums and products 20 to 25, 20 and 12, their min and max 12 to 20. So
// fold while a message is in the cache.
package simd
