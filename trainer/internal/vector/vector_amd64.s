//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// func adadelta(n int, x, grad, sq, acc *float32, by *Adadelta)
//
// The order of operands and operations is that of trainer's adadeltaMove, and no
// product is fused with a sum.
TEXT ·adadelta(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), DI
	MOVQ grad+16(FP), SI
	MOVQ sq+24(FP), R8
	MOVQ acc+32(FP), R9
	MOVQ by+40(FP), AX
	VBROADCASTSS Adadelta_LR(AX), Y15
	VBROADCASTSS Adadelta_Rho(AX), Y14
	VBROADCASTSS Adadelta_Fresh(AX), Y13
	VBROADCASTSS Adadelta_Eps(AX), Y12
	VBROADCASTSS Adadelta_Decay(AX), Y11
	VBROADCASTSS Adadelta_Sign(AX), Y10
	MOVL Adadelta_Decay(AX), DX
	XORQ BX, BX

eight:
	VMULPS  (SI)(BX*4), Y10, Y0 // g
	VMOVUPS (DI)(BX*4), Y1      // x
	TESTL   DX, DX              // 0·x is not 0 if x is infinite
	JEQ     weightless
	VMULPS  Y1, Y11, Y2
	VADDPS  Y2, Y0, Y0

weightless:
	VMULPS  (R8)(BX*4), Y14, Y2
	VMULPS  Y0, Y13, Y3
	VMULPS  Y0, Y3, Y3
	VADDPS  Y3, Y2, Y2
	VMOVUPS Y2, (R8)(BX*4)      // sq = Rho·sq + Fresh·g·g
	VMOVUPS (R9)(BX*4), Y4
	VADDPS  Y12, Y4, Y5
	VSQRTPS Y5, Y5
	VADDPS  Y12, Y2, Y2
	VSQRTPS Y2, Y2
	VDIVPS  Y2, Y5, Y5
	VMULPS  Y0, Y5, Y5          // d = √(acc+Eps) / √(sq+Eps) · g
	VMULPS  Y4, Y14, Y4
	VMULPS  Y5, Y13, Y6
	VMULPS  Y5, Y6, Y6
	VADDPS  Y6, Y4, Y4
	VMOVUPS Y4, (R9)(BX*4)      // acc = Rho·acc + Fresh·d·d
	VMULPS  Y5, Y15, Y5
	VSUBPS  Y5, Y1, Y1
	VMOVUPS Y1, (DI)(BX*4)      // x -= LR·d
	ADDQ    $const_Lanes, BX
	CMPQ    BX, CX
	JLT     eight
	VZEROUPPER
	RET
