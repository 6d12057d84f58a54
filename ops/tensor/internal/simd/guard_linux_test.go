package simd

import (
	"runtime/debug"
	"syscall"
	"testing"
)

// fenced is a page between two that must not be touched.
func fenced(t *testing.T) []byte {
	page := syscall.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{mem[:page], mem[2*page:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return mem[page : 2*page]
}

// TestStaysInside has operands begin and end at the fences, where one byte too
// many is a fault.
func TestStaysInside(t *testing.T) {
	usable(t)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	d, s := fenced(t), fenced(t)
	end := len(d)
	for k := Kernel(1); k < count; k++ {
		for n := 0; n <= 272; n += 8 {
			k.Fold(d[:n], s[:n])
			k.Fold(d[end-n:], s[end-n:])
			k.FoldEach(d[end-n:], s[end-8:])
		}
	}
	for n := range 272 { // sizes that only bytes have
		Uint8.Sum.Fold(d[end-n:], s[end-n:])
	}
}
