//go:build !(linux && (amd64 || arm64))

package gpu

import (
	"fmt"
	"runtime"
	"unsafe"
)

// linkable says that this build can open no library. The rest of the package is the
// same everywhere: it meets an open that fails, and so goes no further.
const linkable = false

func open(name string) (uintptr, error) {
	return 0, fmt.Errorf("no libraries are opened on %s/%s", runtime.GOOS, runtime.GOARCH)
}

func symbol(_ uintptr, name string) (uintptr, error) { return open(name) }

func invoke(uintptr, ...uintptr) uintptr { panic("gpu: a call into no library") }

func initByValue(uintptr) func(*uintptr, int32, UniqueID, int32, *ncclConfig) int32 {
	panic("gpu: a function of no library")
}

func callback(func(uintptr)) uintptr { panic("gpu: a callback from no library") }

func at(uintptr) unsafe.Pointer { panic("gpu: memory of no library") }
