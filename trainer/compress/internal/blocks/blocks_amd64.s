//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// EACH has number in all of v's 32-bit elements, x being v's lower half.
#define EACH(number, x, v) \
	MOVL $number, AX \
	VMOVD AX, x \
	VPBROADCASTD x, v

// func greatest(n int, x *float32) uint32
//
// Magnitudes are compared as integers. Four at a time, for none to wait for the one before.
TEXT ·greatest(SB), NOSPLIT, $0-20
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), SI
	VPCMPEQD Y8, Y8, Y8
	VPSRLD $1, Y8, Y8 // all but the sign
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

more:
	VPAND 0(SI), Y8, Y4
	VPAND 32(SI), Y8, Y5
	VPAND 64(SI), Y8, Y6
	VPAND 96(SI), Y8, Y7
	VPMAXUD Y4, Y0, Y0
	VPMAXUD Y5, Y1, Y1
	VPMAXUD Y6, Y2, Y2
	VPMAXUD Y7, Y3, Y3
	ADDQ $(4*const_Lanes), SI
	SUBQ $const_Lanes, CX
	JNE  more
	VPMAXUD Y1, Y0, Y0
	VPMAXUD Y3, Y2, Y2
	VPMAXUD Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1 // the upper half
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1 // the neighbour
	VPMAXUD X1, X0, X0
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET

// Of encoding: constants, and 32 elements at SI as integers in the last bits of Y0's bytes.
#define INVERSE Y15
#define MAGIC   Y14 // 3·2²², beyond which a float's last bits are an integer's
#define LAST    Y13 // those bits of a float
#define ORDER   Y12 // fours of bytes as they stand after both packings

#define CONSTANTS(last) \
	EACH(0x4b400000, X14, MAGIC) \
	EACH(last, X13, LAST) \
	MOVQ $0x0703060205010400, AX \
	VMOVQ AX, X12 \
	VPMOVZXBD X12, ORDER

#define NEAREST(o, v) \
	VMULPS o(SI), INVERSE, v \
	VADDPS MAGIC, v, v \
	VPAND LAST, v, v

#define INTEGERS \
	NEAREST(0, Y0) \
	NEAREST(32, Y1) \
	NEAREST(64, Y2) \
	NEAREST(96, Y3) \
	VPACKUSDW Y1, Y0, Y0 \
	VPACKUSDW Y3, Y2, Y2 \
	VPACKUSWB Y2, Y0, Y0 \
	VPERMD Y0, ORDER, Y0

// func encodeInt8(n int, q *byte, x *float32, inverse float32)
TEXT ·encodeInt8(SB), NOSPLIT, $0-28
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), DI
	MOVQ x+16(FP), SI
	VBROADCASTSS inverse+24(FP), INVERSE
	CONSTANTS(0xff)

more:
	INTEGERS
	VMOVDQU Y0, (DI)
	ADDQ $const_Lanes, DI
	ADDQ $(4*const_Lanes), SI
	SUBQ $const_Lanes, CX
	JNE  more
	VZEROUPPER
	RET

// func encodeInt4(n int, q *byte, x *float32, inverse float32)
TEXT ·encodeInt4(SB), NOSPLIT, $0-28
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), DI
	MOVQ x+16(FP), SI
	VBROADCASTSS inverse+24(FP), INVERSE
	CONSTANTS(0x0f)
	EACH(0x10011001, X11, Y11) // 1 and 16, by bytes

more:
	INTEGERS
	VPMADDUBSW Y11, Y0, Y0 // each two as one, in a word
	VPACKUSWB Y0, Y0, Y0
	VPERMQ $8, Y0, Y0      // the first and third quad
	VMOVDQU X0, (DI)
	ADDQ $(const_Lanes/2), DI
	ADDQ $(4*const_Lanes), SI
	SUBQ $const_Lanes, CX
	JNE  more
	VZEROUPPER
	RET

// Of decoding: eight integers in v as floats, in units.
#define UNIT Y15

#define FLOATS(v, o) \
	VCVTDQ2PS v, v \
	VMULPS UNIT, v, v \
	VMOVUPS v, o(DI)

// func decodeInt8(n int, x *float32, q *byte, unit float32)
TEXT ·decodeInt8(SB), NOSPLIT, $0-28
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), DI
	MOVQ q+16(FP), SI
	VBROADCASTSS unit+24(FP), UNIT

more:
	VPMOVSXBD 0(SI), Y0
	VPMOVSXBD 8(SI), Y1
	VPMOVSXBD 16(SI), Y2
	VPMOVSXBD 24(SI), Y3
	FLOATS(Y0, 0)
	FLOATS(Y1, 32)
	FLOATS(Y2, 64)
	FLOATS(Y3, 96)
	ADDQ $const_Lanes, SI
	ADDQ $(4*const_Lanes), DI
	SUBQ $const_Lanes, CX
	JNE  more
	VZEROUPPER
	RET

// func decodeInt4(n int, x *float32, q *byte, unit float32)
//
// Halves of bytes have their sign by (v ^ 8) - 8.
TEXT ·decodeInt4(SB), NOSPLIT, $0-28
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), DI
	MOVQ q+16(FP), SI
	VBROADCASTSS unit+24(FP), UNIT
	EACH(0x0f0f0f0f, X14, Y14)
	EACH(0x08080808, X13, Y13)

more:
	VMOVDQU (SI), X0
	VPSRLW $4, X0, X1
	VPAND X14, X0, X0
	VPAND X14, X1, X1
	VPXOR X13, X0, X0
	VPXOR X13, X1, X1
	VPSUBB X13, X0, X0
	VPSUBB X13, X1, X1
	VPUNPCKLBW X1, X0, X2 // by turns, as they were
	VPUNPCKHBW X1, X0, X3
	VPMOVSXBD X2, Y4
	VPSRLDQ $8, X2, X2
	VPMOVSXBD X2, Y5
	VPMOVSXBD X3, Y6
	VPSRLDQ $8, X3, X3
	VPMOVSXBD X3, Y7
	FLOATS(Y4, 0)
	FLOATS(Y5, 32)
	FLOATS(Y6, 64)
	FLOATS(Y7, 96)
	ADDQ $(const_Lanes/2), SI
	ADDQ $(4*const_Lanes), DI
	SUBQ $const_Lanes, CX
	JNE  more
	VZEROUPPER
	RET
