//go:build !amd64 || purego

package blocks

const available = false

// None is ever called: nothing is available.

func greatest(int, *float32) uint32            { panic("blocks: no kernel") }
func encodeInt8(int, *byte, *float32, float32) { panic("blocks: no kernel") }
func decodeInt8(int, *float32, *byte, float32) { panic("blocks: no kernel") }
func encodeInt4(int, *byte, *float32, float32) { panic("blocks: no kernel") }
func decodeInt4(int, *float32, *byte, float32) { panic("blocks: no kernel") }
