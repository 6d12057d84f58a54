//go:build amd64 && !purego

package vector

import "golang.org/x/sys/cpu"

var available = cpu.X86.HasAVX2

// adadelta takes n elements, a positive multiple of Lanes.
//
//go:noescape
func adadelta(n int, x, grad, sq, acc *float32, by *Adadelta)
