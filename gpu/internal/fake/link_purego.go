//go:build linux && (amd64 || arm64)

package fake

import "github.com/ebitengine/purego"

// linkable says that this build can open a library.
const linkable = true

// find is the address of a library's function. A library that is open already is not opened
// anew.
func find(library, function string) (uintptr, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	return purego.Dlsym(handle, function)
}

func invoke(f uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(f, args...)
	return r
}
