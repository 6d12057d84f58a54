//go:build race

package simd

import (
	"runtime"
	"unsafe"
)

// observe tells the race detector what assembly is about to do, which it does
// not see.
func observe(dst, src []byte) {
	runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(src)), len(src))
	runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(dst)), len(dst))
}
