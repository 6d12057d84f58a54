//go:build linux && (amd64 || arm64)

package gpu

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// linkable says that this build can open a library; see link_none.go.
const linkable = true

// open has the loader open a library: a path, or a name that it looks for itself.
func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// symbol is the address of a function, an error if the library has none of the name.
func symbol(library uintptr, name string) (uintptr, error) {
	return purego.Dlsym(library, name)
}

// invoke calls a C function. It costs a third of a registered function's call, and
// allocates nothing.
//
//go:uintptrescapes
func invoke(f uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(f, args...)
	return r
}

// initByValue is ncclCommInitRankConfig at an address, the one call that is given a
// struct by value, which needs a registered function.
func initByValue(at uintptr) func(comm *uintptr, n int32, id UniqueID, rank int32, c *ncclConfig) int32 {
	type byValue struct{ Internal UniqueID }
	var f func(comm *uintptr, n int32, id byValue, rank int32, c *ncclConfig) int32
	purego.RegisterFunc(&f, at)
	return func(comm *uintptr, n int32, id UniqueID, rank int32, c *ncclConfig) int32 {
		return f(comm, n, byValue{id}, rank, c)
	}
}

// callback is the address of a C function that calls f. There is room for 2000 in a
// process, and none is ever freed: only package variables keep one.
func callback(f func(argument uintptr)) uintptr {
	return purego.NewCallback(func(argument uintptr) uintptr {
		f(argument)
		return 0
	})
}

// at is memory that C allocated. Its address is no Go pointer, so that the collector
// neither moves nor frees it.
func at(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}
