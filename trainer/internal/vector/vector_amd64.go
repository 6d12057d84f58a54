//go:build amd64 && !purego

package vector

import "golang.org/x/sys/cpu"

var available = cpu.X86.HasAVX2

// move takes the step of kernel k on n elements, a positive multiple of Lanes.
//
//go:noescape
func move(k Kernel, n int, by *numbers, x, grad, a, b, c *float32, l *Lengths)
