//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// A kernel is a line at the end of this file: its number, its name, how a block
// of 32 bytes is taken apart into vectors, and the operation on two of those.
// All operations set b to b op a, may use Y4–Y7 besides, and want b first where
// the order shows, which it does for two NaNs: the first one is kept.
//
// A kernel finds DI at the elements to change, SI at the others, and in CX the
// number of bytes, a positive multiple of 32.

#define KERNEL(number, name, BLOCK, OP) \
	DATA kernels<>+(8*number)(SB)/8, $name(SB) \
	TEXT name(SB), NOSPLIT, $0 \
	SUBQ $128, CX \
	JLT  single   \
four: \
	BLOCK(0, OP)  \
	BLOCK(32, OP) \
	BLOCK(64, OP) \
	BLOCK(96, OP) \
	ADDQ $128, SI \
	ADDQ $128, DI \
	SUBQ $128, CX \
	JGE  four     \
single: \
	ADDQ $128, CX \
	JEQ  done     \
one: \
	BLOCK(0, OP)  \
	ADDQ $32, SI  \
	ADDQ $32, DI  \
	SUBQ $32, CX  \
	JNE  one      \
done: \
	VZEROUPPER    \
	RET

// Constants, which fold makes for every kernel.
#define SIGN32 Y15 // 0x80000000: a sign, and -0
#define SIGN64 Y14
#define UPPER  Y13 // 0xffff0000
#define BELOW  Y12 // 0x00007fff: less than half of UPPER's last place
#define ONE32  Y11
#define ONE8   Y10
#define EVEN8  Y9  // 0x00ff

// func fold(k Kernel, dst, src *byte, n int)
TEXT ·fold(SB), NOSPLIT, $0-32
	MOVBLZX k+0(FP), AX
	MOVQ    dst+8(FP), DI
	MOVQ    src+16(FP), SI
	MOVQ    n+24(FP), CX
	LEAQ    kernels<>(SB), DX
	VPCMPEQB Y0, Y0, Y0
	VPSLLD  $31, Y0, SIGN32
	VPSLLQ  $63, Y0, SIGN64
	VPSLLD  $16, Y0, UPPER
	VPSRLD  $17, Y0, BELOW
	VPSRLD  $31, Y0, ONE32
	VPABSB  Y0, ONE8
	VPSRLW  $8, Y0, EVEN8
	MOVQ    (DX)(AX*8), AX
	JMP     AX

// Blocks.

// PLAIN is a block whose elements are computed as they are.
#define PLAIN(o, OP) \
	VMOVDQU o(SI), Y0 \
	VMOVDQU o(DI), Y1 \
	OP(Y0, Y1) \
	VMOVDQU Y1, o(DI)

// FLOAT16 widens to float32 and rounds back to nearest, ties to even. Both make
// a NaN quiet.
#define FLOAT16(o, OP) \
	FLOAT16X8(o+0, OP) \
	FLOAT16X8(o+16, OP)

#define FLOAT16X8(o, OP) \
	VCVTPH2PS o(SI), Y0 \
	VCVTPH2PS o(DI), Y1 \
	OP(Y0, Y1) \
	VCVTPS2PH $0, Y1, o(DI)

// BFLOAT16 computes the even elements, moved up, and the odd ones, where they
// stand, as float32. The block is put together from both upper halves.
#define BFLOAT16(o, OP) \
	VMOVDQU o(SI), Y0 \
	VMOVDQU o(DI), Y1 \
	VPSLLD  $16, Y0, Y2 \
	VPSLLD  $16, Y1, Y3 \
	VPAND   UPPER, Y0, Y0 \
	VPAND   UPPER, Y1, Y1 \
	OP(Y2, Y3) \
	OP(Y0, Y1) \
	NEAREST(Y3) \
	NEAREST(Y1) \
	VPSRLD   $16, Y3, Y3 \
	VPBLENDW $0xaa, Y1, Y3, Y3 \
	VMOVDQU  Y3, o(DI)

// NEAREST rounds b in its upper half to nearest, ties to even, by a carry. A NaN
// stays as it is, for its lower half is zero: the operands' are.
#define NEAREST(b) \
	VPSRLD $16, b, Y4 \
	VPAND  ONE32, Y4, Y4 \
	VPADDD BELOW, b, b \
	VPADDD Y4, b, b

// Operations on floats.

#define ADDPS(a, b) VADDPS a, b, b
#define ADDPD(a, b) VADDPD a, b, b
#define MULPS(a, b) VMULPS a, b, b
#define MULPD(a, b) VMULPD a, b, b
#define DIVPS(a, b) VDIVPS a, b, b
#define DIVPD(a, b) VDIVPD a, b, b

// What is not finite has no zero for a difference from itself.
#define RESIDUALPS(a, b) \
	VSUBPS b, a, b \
	VSUBPS b, b, Y4 \
	VCMPPS $7, Y4, Y4, Y4 \
	VANDPS Y4, b, b

#define RESIDUALPD(a, b) \
	VSUBPD b, a, b \
	VSUBPD b, b, Y4 \
	VCMPPD $7, Y4, Y4, Y4 \
	VANDPD Y4, b, b

// The least, as Go's compiler has it. MIN gives its second source if either is a
// NaN or both are zeros; so once each way round, and the bits of both, which
// differ in those two cases alone: a NaN or'ed with anything stays one, and of
// two zeros the negative one wins.
#define MINPS(a, b) \
	VMINPS a, b, Y4 \
	VMINPS b, a, Y5 \
	VPOR   Y4, Y5, b

#define MINPD(a, b) \
	VMINPD a, b, Y4 \
	VMINPD b, a, Y5 \
	VPOR   Y4, Y5, b

// The greatest is the least of the negated, negated.
#define MAXPS(a, b) \
	VPXOR SIGN32, a, a \
	VPXOR SIGN32, b, b \
	MINPS(a, b) \
	VPXOR SIGN32, b, b

#define MAXPD(a, b) \
	VPXOR SIGN64, a, a \
	VPXOR SIGN64, b, b \
	MINPD(a, b) \
	VPXOR SIGN64, b, b

// The same for bfloat16, whose NaNs come out quiet: to add -0 changes no other
// float.
#define MINQUIET(a, b) \
	MINPS(a, b) \
	VADDPS SIGN32, b, b

#define MAXQUIET(a, b) \
	MAXPS(a, b) \
	VADDPS SIGN32, b, b

// Operations on integers, the letter being their size: byte, word, double, quad.

#define ADDB(a, b) VPADDB a, b, b
#define ADDW(a, b) VPADDW a, b, b
#define ADDD(a, b) VPADDD a, b, b
#define ADDQUAD(a, b) VPADDQ a, b, b
#define MULW(a, b) VPMULLW a, b, b
#define MULD(a, b) VPMULLD a, b, b

// The low byte of a product of words is that of their low bytes.
#define MULB(a, b) \
	VPSRLW  $8, a, Y4 \
	VPSRLW  $8, b, Y5 \
	VPMULLW Y4, Y5, Y5 \
	VPSLLW  $8, Y5, Y5 \
	VPMULLW a, b, b \
	VPAND   EVEN8, b, b \
	VPOR    Y5, b, b

// The crosswise products count for the upper half; that of the upper halves
// overflows.
#define MULQUAD(a, b) \
	VPSRLQ   $32, a, Y4 \
	VPSRLQ   $32, b, Y5 \
	VPMULUDQ b, Y4, Y4 \
	VPMULUDQ a, Y5, Y5 \
	VPADDQ   Y4, Y5, Y5 \
	VPSLLQ   $32, Y5, Y5 \
	VPMULUDQ a, b, b \
	VPADDQ   Y5, b, b

#define MINSB(a, b) VPMINSB a, b, b
#define MINUB(a, b) VPMINUB a, b, b
#define MINSW(a, b) VPMINSW a, b, b
#define MINUW(a, b) VPMINUW a, b, b
#define MINSD(a, b) VPMINSD a, b, b
#define MINUD(a, b) VPMINUD a, b, b
#define MAXSB(a, b) VPMAXSB a, b, b
#define MAXUB(a, b) VPMAXUB a, b, b
#define MAXSW(a, b) VPMAXSW a, b, b
#define MAXUW(a, b) VPMAXUW a, b, b
#define MAXSD(a, b) VPMAXSD a, b, b
#define MAXUD(a, b) VPMAXUD a, b, b

// AVX2 compares quads, as signed ones, and leaves the choice to a blend. To flip
// the upper bit makes an order of unsigned ones of it.
#define MINSQ(a, b) \
	VPCMPGTQ  a, b, Y4 \
	VBLENDVPD Y4, a, b, b

#define MAXSQ(a, b) \
	VPCMPGTQ  b, a, Y4 \
	VBLENDVPD Y4, a, b, b

#define MINUQ(a, b) \
	VPXOR     SIGN64, a, Y4 \
	VPXOR     SIGN64, b, Y5 \
	VPCMPGTQ  Y4, Y5, Y4 \
	VBLENDVPD Y4, a, b, b

#define MAXUQ(a, b) \
	VPXOR     SIGN64, a, Y4 \
	VPXOR     SIGN64, b, Y5 \
	VPCMPGTQ  Y5, Y4, Y4 \
	VBLENDVPD Y4, a, b, b

// Operations on bits, and on bools, which are 1 for every byte that is not 0.

#define BITAND(a, b) VPAND a, b, b
#define BITOR(a, b) VPOR a, b, b
#define BITXOR(a, b) VPXOR a, b, b

#define BOOLAND(a, b) \
	VPMINUB a, b, b \
	VPMINUB ONE8, b, b

#define BOOLOR(a, b) \
	VPOR    a, b, b \
	VPMINUB ONE8, b, b

#define BOOLXOR(a, b) \
	VPMINUB ONE8, a, a \
	VPMINUB ONE8, b, b \
	VPXOR   a, b, b

// Kernels.

KERNEL(const_sumFloat32, sumFloat32<>, PLAIN, ADDPS)
KERNEL(const_productFloat32, productFloat32<>, PLAIN, MULPS)
KERNEL(const_minFloat32, minFloat32<>, PLAIN, MINPS)
KERNEL(const_maxFloat32, maxFloat32<>, PLAIN, MAXPS)
KERNEL(const_quotientFloat32, quotientFloat32<>, PLAIN, DIVPS)
KERNEL(const_residualFloat32, residualFloat32<>, PLAIN, RESIDUALPS)

KERNEL(const_sumFloat64, sumFloat64<>, PLAIN, ADDPD)
KERNEL(const_productFloat64, productFloat64<>, PLAIN, MULPD)
KERNEL(const_minFloat64, minFloat64<>, PLAIN, MINPD)
KERNEL(const_maxFloat64, maxFloat64<>, PLAIN, MAXPD)
KERNEL(const_quotientFloat64, quotientFloat64<>, PLAIN, DIVPD)
KERNEL(const_residualFloat64, residualFloat64<>, PLAIN, RESIDUALPD)

KERNEL(const_sumFloat16, sumFloat16<>, FLOAT16, ADDPS)
KERNEL(const_productFloat16, productFloat16<>, FLOAT16, MULPS)
KERNEL(const_minFloat16, minFloat16<>, FLOAT16, MINPS)
KERNEL(const_maxFloat16, maxFloat16<>, FLOAT16, MAXPS)
KERNEL(const_quotientFloat16, quotientFloat16<>, FLOAT16, DIVPS)

KERNEL(const_sumBFloat16, sumBFloat16<>, BFLOAT16, ADDPS)
KERNEL(const_productBFloat16, productBFloat16<>, BFLOAT16, MULPS)
KERNEL(const_minBFloat16, minBFloat16<>, BFLOAT16, MINQUIET)
KERNEL(const_maxBFloat16, maxBFloat16<>, BFLOAT16, MAXQUIET)
KERNEL(const_quotientBFloat16, quotientBFloat16<>, BFLOAT16, DIVPS)

KERNEL(const_sum8, sum8<>, PLAIN, ADDB)
KERNEL(const_product8, product8<>, PLAIN, MULB)
KERNEL(const_minInt8, minInt8<>, PLAIN, MINSB)
KERNEL(const_maxInt8, maxInt8<>, PLAIN, MAXSB)
KERNEL(const_minUint8, minUint8<>, PLAIN, MINUB)
KERNEL(const_maxUint8, maxUint8<>, PLAIN, MAXUB)

KERNEL(const_sum16, sum16<>, PLAIN, ADDW)
KERNEL(const_product16, product16<>, PLAIN, MULW)
KERNEL(const_minInt16, minInt16<>, PLAIN, MINSW)
KERNEL(const_maxInt16, maxInt16<>, PLAIN, MAXSW)
KERNEL(const_minUint16, minUint16<>, PLAIN, MINUW)
KERNEL(const_maxUint16, maxUint16<>, PLAIN, MAXUW)

KERNEL(const_sum32, sum32<>, PLAIN, ADDD)
KERNEL(const_product32, product32<>, PLAIN, MULD)
KERNEL(const_minInt32, minInt32<>, PLAIN, MINSD)
KERNEL(const_maxInt32, maxInt32<>, PLAIN, MAXSD)
KERNEL(const_minUint32, minUint32<>, PLAIN, MINUD)
KERNEL(const_maxUint32, maxUint32<>, PLAIN, MAXUD)

KERNEL(const_sum64, sum64<>, PLAIN, ADDQUAD)
KERNEL(const_product64, product64<>, PLAIN, MULQUAD)
KERNEL(const_minInt64, minInt64<>, PLAIN, MINSQ)
KERNEL(const_maxInt64, maxInt64<>, PLAIN, MAXSQ)
KERNEL(const_minUint64, minUint64<>, PLAIN, MINUQ)
KERNEL(const_maxUint64, maxUint64<>, PLAIN, MAXUQ)

KERNEL(const_bitAnd, bitAnd<>, PLAIN, BITAND)
KERNEL(const_bitOr, bitOr<>, PLAIN, BITOR)
KERNEL(const_bitXor, bitXor<>, PLAIN, BITXOR)
KERNEL(const_boolAnd, boolAnd<>, PLAIN, BOOLAND)
KERNEL(const_boolOr, boolOr<>, PLAIN, BOOLOR)
KERNEL(const_boolXor, boolXor<>, PLAIN, BOOLXOR)

GLOBL kernels<>(SB), RODATA, $(8*const_count)
