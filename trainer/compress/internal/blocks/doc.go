// Package blocks has the arithmetic of blocks of small integers on vectors of float32: the
// greatest of a block, its elements as integers of 8 or 4 bits, and back.
//
// A kernel does to each element what package compress's plain Go does, operation by operation:
// IEEE 754 rounds a vector's products and sums as it rounds single ones, nothing is fused, and
// what is no number comes out with the same bits. So who has kernels and who has not write the
// same bytes, and read the same floats.
//
// A kernel takes what fills its vectors and says how much that was; the caller does the rest.
// Where there are none, on other processors than amd64 with AVX2 and with the build tag purego,
// that is everything. Operands may lie at any address, and none overlaps another.
package blocks
