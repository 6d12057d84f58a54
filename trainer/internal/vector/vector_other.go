//go:build !amd64 || purego

package vector

const available = false

// adadelta is never called: nothing is available.
func adadelta(int, *float32, *float32, *float32, *float32, *Adadelta) {
	panic("vector: no kernel")
}
