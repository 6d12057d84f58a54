// Package vector has optimisers' arithmetic on eight float32 at a time.
//
// A kernel does to each element what package trainer's plain Go does, operation by operation
// and each rounded on its own: IEEE 754 rounds a vector's sums, products, quotients and roots
// as it rounds single ones, and nothing is fused. So who has kernels and who has not end up
// with the same bits, and may train together. (Of a NaN the bits are the processor's.)
//
// A kernel takes what fills its vectors and says how much that was; the caller does the rest.
// Where there are none, on other processors than amd64 with AVX2 and with the build tag
// purego, that is everything.
//
// # Adding a kernel
//
// A Kernel in step.go, its formula and a line at the end of vector_amd64.s, and its loop in
// trainer's TestVector, which compares the two. The numbers of a step, what loads them, the
// loop around a formula and what formulas have in common are written once.
//
// # Speed
//
// On one core of a 2024 server a step by kernels is six to thirteen times as fast as in plain
// Go; package trainer's doc has the times.
package vector
