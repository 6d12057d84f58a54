//go:build race

package vector

import (
	"runtime"
	"unsafe"
)

// observe tells the race detector what assembly is about to do, which it does
// not see.
func observe(grad []float32, moved ...[]float32) {
	runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(grad)), 4*len(grad))
	for _, m := range moved {
		if len(m) != 0 {
			runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(m)), 4*len(m))
		}
	}
}
