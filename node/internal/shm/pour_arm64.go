//go:build linux

package shm

// A pourer copies what is written into a ring.
type pourer struct{}

// copy copies as the builtin does.
func (*pourer) copy(dst, src []byte) int { return copy(dst, src) }
