//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// The order of operations is that of trainer's loops, and no product is fused with a sum.

// What move makes of its arguments: the step's numbers, eight times each, and where the
// elements of this turn are.
#define LR     Y15
#define SIGN   Y14
#define DECAY  Y13
#define BETA1  Y12
#define FRESH1 Y11
#define BETA2  Y10
#define FRESH2 Y9
#define EPS    Y8
#define ROOT   Y7
#define SCALE  Y6
#define AT_X    (DI)(BX*4)
#define AT_GRAD (SI)(BX*4)
#define AT_A    (R8)(BX*4)
#define AT_B    (R9)(BX*4)
#define AT_C    (R10)(BX*4)

// Branches, all of which go the same way in every turn: a number that is 0, of either sign.
#define UNLESS_DECAY    TESTL DX, DX; JEQ
#define UNLESS_MOMENTUM TESTL R11, R11; JEQ
#define UNLESS_NESTEROV CMPB numbers_nesterov(AX), $0; JEQ
#define UNLESS_B        TESTQ R9, R9; JEQ
#define UNLESS_C        TESTQ R10, R10; JEQ

// Eight elements, their gradients, a mean and a mean of squares; and two for anything.
#define X Y0
#define G Y1
#define M Y2
#define S Y3
#define T Y4
#define U Y5

// func move(k Kernel, n int, by *numbers, x, grad, a, b, c *float32, l *Lengths)
TEXT ·move(SB), NOSPLIT, $0-72
	MOVBLZX k+0(FP), R12
	MOVQ n+8(FP), CX
	MOVQ by+16(FP), AX
	MOVQ x+24(FP), DI
	MOVQ grad+32(FP), SI
	MOVQ a+40(FP), R8
	MOVQ b+48(FP), R9
	MOVQ c+56(FP), R10
	VBROADCASTSS numbers_lr(AX), LR
	VBROADCASTSS numbers_sign(AX), SIGN
	VBROADCASTSS numbers_decay(AX), DECAY
	VBROADCASTSS numbers_beta1(AX), BETA1
	VBROADCASTSS numbers_fresh1(AX), FRESH1
	VBROADCASTSS numbers_beta2(AX), BETA2
	VBROADCASTSS numbers_fresh2(AX), FRESH2
	VBROADCASTSS numbers_eps(AX), EPS
	VBROADCASTSS numbers_root(AX), ROOT
	VBROADCASTSS numbers_scale(AX), SCALE
	MOVL numbers_decay(AX), DX
	ADDL DX, DX // loses the sign
	MOVL numbers_beta1(AX), R11
	ADDL R11, R11
	LEAQ kernels<>(SB), R13
	MOVQ (R13)(R12*8), R13
	MOVQ l+64(FP), R12
	XORQ BX, BX
	JMP  R13

// KERNEL takes n elements through STEP, eight in a turn.
#define KERNEL(number, name, STEP) \
	DATA kernels<>+(8*number)(SB)/8, $name(SB) \
	TEXT name(SB), NOSPLIT, $0 \
eight: \
	STEP                  \
	ADDQ $const_Lanes, BX \
	CMPQ BX, CX           \
	JLT  eight            \
	VZEROUPPER            \
	RET

// GRADIENT: x = *x, g = sign·*grad + decay·x. A decay of 0 adds nothing, for 0·x is not 0 if x
// is infinite.
#define GRADIENT \
	VMOVUPS AT_X, X          \
	VMULPS  AT_GRAD, SIGN, G \
	UNLESS_DECAY weightless  \
	VMULPS  X, DECAY, T      \
	VADDPS  T, G, G          \
weightless:

// MEAN: to = *at = keep·*at + fresh·of
#define MEAN(at, keep, fresh, of, to) \
	VMULPS  at, keep, to  \
	VMULPS  of, fresh, T  \
	VADDPS  T, to, to     \
	VMOVUPS to, at

// SQUARES: to = *at = beta2·*at + fresh2·of²
#define SQUARES(at, of, to) \
	VMULPS  at, BETA2, to \
	VMULPS  of, FRESH2, T \
	VMULPS  of, T, T      \
	VADDPS  T, to, to     \
	VMOVUPS to, at

// DESCEND: *x = x - lr·d
#define DESCEND(d) \
	VMULPS  d, LR, T \
	VSUBPS  T, X, X  \
	VMOVUPS X, AT_X

// MAX: to = the greater of a and b, as Go has it. VMAXPS gives one and the same operand if
// either is a NaN, or both are zeros; so once each way round.
#define MAX(a, b, to) \
	VMAXPS a, b, T     \
	VMAXPS b, a, U     \
	VANDPS T, U, T     \
	VCMPPS $3, a, b, U \ // are they unordered?
	VORPS  T, U, to

// buf = momentum·buf + fresh1·g
// x -= lr·buf, or of Nesterov lr·(g + momentum·buf)
#define SGD \
	GRADIENT                       \
	UNLESS_MOMENTUM still          \
	MEAN(AT_A, BETA1, FRESH1, G, M) \
	UNLESS_NESTEROV heavy          \
	VMULPS  M, BETA1, M            \
	VADDPS  M, G, M                \
heavy: \
	VMOVAPS M, G                   \
still: \
	DESCEND(G)

// d = √(acc+eps) / √(sq+eps) · g
#define ADADELTA \
	GRADIENT                \
	SQUARES(AT_A, G, S)     \
	VADDPS  AT_B, EPS, M    \
	VSQRTPS M, M            \
	VADDPS  S, EPS, S       \
	VSQRTPS S, S            \
	VDIVPS  S, M, M         \
	VMULPS  G, M, M         \
	SQUARES(AT_B, M, S)     \
	DESCEND(M)

// sum += g²
// x -= lr·g / (√sum + eps)
#define ADAGRAD \
	GRADIENT             \
	VMULPS  G, G, S      \
	VADDPS  AT_A, S, S   \
	VMOVUPS S, AT_A      \
	VSQRTPS S, S         \
	VADDPS  EPS, S, S    \
	VMULPS  G, LR, G     \
	VDIVPS  S, G, G      \
	VSUBPS  G, X, X      \
	VMOVUPS X, AT_X

// x = scale·x - lr·m / (√v/root + eps), of AMSGrad the greatest v
#define ADAM \
	GRADIENT                        \
	MEAN(AT_A, BETA1, FRESH1, G, M) \
	SQUARES(AT_B, G, S)             \
	UNLESS_C recent                 \
	VMOVUPS AT_C, G                 \
	MAX(G, S, S)                    \
	VMOVUPS S, AT_C                 \
recent: \
	VSQRTPS S, S                    \
	VDIVPS  ROOT, S, S              \
	VADDPS  EPS, S, S               \
	VMULPS  M, LR, M                \
	VDIVPS  S, M, M                 \
	VMULPS  X, SCALE, X             \
	VSUBPS  M, X, X                 \
	VMOVUPS X, AT_X

// buf = momentum·buf + g/(√(sq-avg²) + eps)
#define RMSPROP \
	GRADIENT                        \
	SQUARES(AT_A, G, S)             \
	UNLESS_B around0                \
	MEAN(AT_B, BETA2, FRESH2, G, M) \
	VMULPS  M, M, M                 \
	VSUBPS  M, S, S                 \
	VXORPS  U, U, U                 \
	VMAXPS  S, U, S                 \ // of NaN and 0 the second: S
around0: \
	VSQRTPS S, S                    \
	VADDPS  EPS, S, S               \
	VDIVPS  S, G, G                 \
	UNLESS_MOMENTUM still           \
	VMULPS  AT_C, BETA1, M          \
	VADDPS  M, G, G                 \
	VMOVUPS G, AT_C                 \
still: \
	DESCEND(G)

// SIGNUM: d = 1 or -1, with d's sign, unless it is 0 or a NaN
#define SIGNUM(d) \
	VPSRLD    $31, d, T     \
	VPSLLD    $31, T, T     \
	VPCMPEQD  U, U, U       \
	VPSLLD    $25, U, U     \
	VPSRLD    $2, U, U      \ // 1
	VPOR      U, T, T       \
	VXORPS    U, U, U       \
	VCMPPS    $12, U, d, U  \ // d < 0 or d > 0
	VBLENDVPS U, T, d, d

// x -= lr·(signum(beta1·m + fresh1·g) + decay·x)
// m = beta2·m + fresh2·g
#define LION \
	VMOVUPS AT_X, X                 \
	VMULPS  AT_GRAD, SIGN, G        \
	VMULPS  AT_A, BETA1, M          \
	VMULPS  G, FRESH1, T            \
	VADDPS  T, M, M                 \
	SIGNUM(M)                       \
	VMULPS  X, DECAY, T             \
	VADDPS  T, M, M                 \
	DESCEND(M)                      \
	MEAN(AT_A, BETA2, FRESH2, G, M)

// MOVE: m = m/scale / (√s/root + eps) + decay·x
#define MOVE \
	VDIVPS  SCALE, M, M \
	VSQRTPS S, S        \
	VDIVPS  ROOT, S, S  \
	VADDPS  EPS, S, S   \
	VDIVPS  S, M, M     \
	VMULPS  X, DECAY, T \
	VADDPS  T, M, M

// LENGTHS: *at += v², in float64; low is the lower half of v
#define LENGTHS(at, v, low) \
	VEXTRACTF128 $1, v, X5     \ // of U
	VCVTPS2PD low, T           \
	VCVTPS2PD X5, U            \
	VMULPD    T, T, T          \
	VMULPD    U, U, U          \
	VADDPD    at+0(R12), T, T  \
	VADDPD    at+32(R12), U, U \
	VMOVUPD   T, at+0(R12)     \
	VMOVUPD   U, at+32(R12)

#define LAMB_LENGTHS \
	VMOVUPS AT_X, X                 \
	VMULPS  AT_GRAD, SIGN, G        \
	MEAN(AT_A, BETA1, FRESH1, G, M) \
	SQUARES(AT_B, G, S)             \
	MOVE                            \
	LENGTHS(Lengths_X, X, X0)       \
	LENGTHS(Lengths_Move, M, X2)

#define LAMB \
	VMOVUPS AT_X, X \
	VMOVUPS AT_A, M \
	VMOVUPS AT_B, S \
	MOVE            \
	DESCEND(M)

KERNEL(const_SGD, sgd<>, SGD)
KERNEL(const_Adadelta, adadelta<>, ADADELTA)
KERNEL(const_Adagrad, adagrad<>, ADAGRAD)
KERNEL(const_Adam, adam<>, ADAM)
KERNEL(const_RMSprop, rmsprop<>, RMSPROP)
KERNEL(const_Lion, lion<>, LION)
KERNEL(const_LAMB, lamb<>, LAMB)
KERNEL(const_lambLengths, lambLengths<>, LAMB_LENGTHS)

GLOBL kernels<>(SB), RODATA, $(8*const_kernels)
