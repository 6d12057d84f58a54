//go:build amd64 && !purego

package kern

import "golang.org/x/sys/cpu"

//go:noescape
func tileAVX2(k int, a, b *float32, off *int, c0, c1, c2, c3 *float32)

//go:noescape
func dotAVX2(n int, a0, a1, a2, a3, b0, b1, b2 *float32, sums *Sums)

//go:noescape
func addAVX2(n int, dst, x *float32)

//go:noescape
func prefetchAVX2(ldc int, c *float32)

// Best is the fastest engine that this processor can run.
func Best() Engine {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return AVX2
	}
	return Portable
}
