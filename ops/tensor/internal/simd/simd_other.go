//go:build !amd64 || purego

package simd

const available = false

func fold(Kernel, *byte, *byte, int) { panic("simd: no assembly in this build") }
