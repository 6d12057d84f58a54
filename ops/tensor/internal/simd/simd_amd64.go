//go:build amd64 && !purego

package simd

import "golang.org/x/sys/cpu"

// available: F16C is older than AVX2, and any processor that has one has both.
var available = cpu.X86.HasAVX2 && cpu.X86.HasF16C

// fold is kernel k for n bytes, a positive multiple of block.
//
//go:noescape
func fold(k Kernel, dst, src *byte, n int)
