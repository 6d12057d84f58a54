//go:build amd64 && !purego

#include "textflag.h"

// The kernels that multiply hold twelve sums of eight lanes in Y0–Y11, three to a row: enough
// to have two FMAs of four cycles start in every cycle. Y12–Y14 are a piece of B
// that meets each of four rows of A in turn, and Y15 is a row's piece of A.

#define ROW(s0, s1, s2) \
	VFMADD231PS Y12, Y15, s0 \
	VFMADD231PS Y13, Y15, s1 \
	VFMADD231PS Y14, Y15, s2

#define LOAD(p, off, s0, s1, s2) \
	VMOVUPS off+0(p), s0  \
	VMOVUPS off+32(p), s1 \
	VMOVUPS off+64(p), s2

#define STORE(p, off, s0, s1, s2) \
	VMOVUPS s0, off+0(p)  \
	VMOVUPS s1, off+32(p) \
	VMOVUPS s2, off+64(p)

#define START(off, s0, s1, s2) \
	VBROADCASTSS off(SI), s0 \
	VMOVAPS s0, s1 \
	VMOVAPS s0, s2

// func tileAVX2(k int, a, b *float32, off *int, c0, c1, c2, c3 *float32)
TEXT ·tileAVX2(SB), NOSPLIT, $0-64
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
	MOVQ off+24(FP), R8
	MOVQ c0+32(FP), R9
	MOVQ c1+40(FP), R10
	MOVQ c2+48(FP), R11
	MOVQ c3+56(FP), R12
	START(0, Y0, Y1, Y2)
	START(4, Y3, Y4, Y5)
	START(8, Y6, Y7, Y8)
	START(12, Y9, Y10, Y11)

tileLoop:
	ADDQ $16, SI
	MOVQ (R8), AX
	LEAQ (DI)(AX*4), AX
	LOAD(AX, 0, Y12, Y13, Y14)
	VBROADCASTSS 0(SI), Y15
	ROW(Y0, Y1, Y2)
	VBROADCASTSS 4(SI), Y15
	ROW(Y3, Y4, Y5)
	VBROADCASTSS 8(SI), Y15
	ROW(Y6, Y7, Y8)
	VBROADCASTSS 12(SI), Y15
	ROW(Y9, Y10, Y11)
	ADDQ $8, R8
	DECQ CX
	JNZ  tileLoop

	STORE(R9, 0, Y0, Y1, Y2)
	STORE(R10, 0, Y3, Y4, Y5)
	STORE(R11, 0, Y6, Y7, Y8)
	STORE(R12, 0, Y9, Y10, Y11)
	VZEROUPPER
	RET

// Eight lanes on, then eight off: the eight that start r before the middle are r on.
DATA lanes<>+0(SB)/8, $-1
DATA lanes<>+8(SB)/8, $-1
DATA lanes<>+16(SB)/8, $-1
DATA lanes<>+24(SB)/8, $-1
DATA lanes<>+32(SB)/8, $0
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// func dotAVX2(n int, a0, a1, a2, a3, b0, b1, b2 *float32, sums *Sums)
TEXT ·dotAVX2(SB), NOSPLIT, $0-72
	MOVQ n+0(FP), CX
	MOVQ a0+8(FP), SI
	MOVQ a1+16(FP), DI
	MOVQ a2+24(FP), R8
	MOVQ a3+32(FP), R9
	MOVQ b0+40(FP), R10
	MOVQ b1+48(FP), R11
	MOVQ b2+56(FP), R12
	MOVQ sums+64(FP), DX
	LOAD(DX, 0, Y0, Y1, Y2)
	LOAD(DX, 96, Y3, Y4, Y5)
	LOAD(DX, 192, Y6, Y7, Y8)
	LOAD(DX, 288, Y9, Y10, Y11)
	XORQ AX, AX
	MOVQ CX, BX
	ANDQ $7, BX
	SHRQ $3, CX
	JZ   dotTail

dotLoop:
	VMOVUPS (R10)(AX*1), Y12
	VMOVUPS (R11)(AX*1), Y13
	VMOVUPS (R12)(AX*1), Y14
	VMOVUPS (SI)(AX*1), Y15
	ROW(Y0, Y1, Y2)
	VMOVUPS (DI)(AX*1), Y15
	ROW(Y3, Y4, Y5)
	VMOVUPS (R8)(AX*1), Y15
	ROW(Y6, Y7, Y8)
	VMOVUPS (R9)(AX*1), Y15
	ROW(Y9, Y10, Y11)
	ADDQ $32, AX
	DECQ CX
	JNZ  dotLoop

// The last n%8 elements are loaded under a mask, which touches nothing past
// them. No register is left for it: each row of A overwrites it.
dotTail:
	TESTQ BX, BX
	JZ    dotDone
	SHLQ  $2, BX
	LEAQ  lanes<>+32(SB), CX
	SUBQ  BX, CX
	VMOVUPS (CX), Y15
	VMASKMOVPS (R10)(AX*1), Y15, Y12
	VMASKMOVPS (R11)(AX*1), Y15, Y13
	VMASKMOVPS (R12)(AX*1), Y15, Y14
	VMASKMOVPS (SI)(AX*1), Y15, Y15
	ROW(Y0, Y1, Y2)
	VMOVUPS (CX), Y15
	VMASKMOVPS (DI)(AX*1), Y15, Y15
	ROW(Y3, Y4, Y5)
	VMOVUPS (CX), Y15
	VMASKMOVPS (R8)(AX*1), Y15, Y15
	ROW(Y6, Y7, Y8)
	VMOVUPS (CX), Y15
	VMASKMOVPS (R9)(AX*1), Y15, Y15
	ROW(Y9, Y10, Y11)

dotDone:
	STORE(DX, 0, Y0, Y1, Y2)
	STORE(DX, 96, Y3, Y4, Y5)
	STORE(DX, 192, Y6, Y7, Y8)
	STORE(DX, 288, Y9, Y10, Y11)
	VZEROUPPER
	RET

// func addAVX2(n int, dst, x *float32)
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ dst+8(FP), DI
	MOVQ x+16(FP), SI
	XORQ AX, AX

addLoop:
	VMOVUPS (DI)(AX*4), Y0
	VADDPS  (SI)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JB   addLoop
	VZEROUPPER
	RET

// func prefetchAVX2(ldc int, c *float32)
TEXT ·prefetchAVX2(SB), NOSPLIT, $0-16
	MOVQ ldc+0(FP), AX
	MOVQ c+8(FP), DI
	SHLQ $2, AX
	LEAQ (AX)(AX*2), CX
	PREFETCHT0 0(DI)
	PREFETCHT0 64(DI)
	PREFETCHT0 0(DI)(AX*1)
	PREFETCHT0 64(DI)(AX*1)
	PREFETCHT0 0(DI)(AX*2)
	PREFETCHT0 64(DI)(AX*2)
	PREFETCHT0 0(DI)(CX*1)
	PREFETCHT0 64(DI)(CX*1)
	RET
