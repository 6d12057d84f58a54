//go:build amd64 && !purego

package blocks

import "golang.org/x/sys/cpu"

var available = cpu.X86.HasAVX2

// Each takes n elements, a positive multiple of Lanes.

//go:noescape
func greatest(n int, x *float32) uint32

//go:noescape
func encodeInt8(n int, q *byte, x *float32, inverse float32)

//go:noescape
func decodeInt8(n int, x *float32, q *byte, unit float32)

//go:noescape
func encodeInt4(n int, q *byte, x *float32, inverse float32)

//go:noescape
func decodeInt4(n int, x *float32, q *byte, unit float32)
