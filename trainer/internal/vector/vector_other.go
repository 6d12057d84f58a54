//go:build !amd64 || purego

package vector

const available = false

// move is never called: nothing is available.
func move(Kernel, int, *numbers, *float32, *float32, *float32, *float32, *float32, *Lengths) {
	panic("vector: no kernel")
}
