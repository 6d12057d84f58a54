package kern

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// fenced is n floats of zeros against the end, or the start, of pages between two
// that must not be touched: a read of one float too many is a fault.
func fenced(t *testing.T, n int, atEnd bool) []float32 {
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{mem[:page], mem[page+size:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	start := page
	if atEnd {
		start += size - 4*n
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&mem[start])), n)
}

func TestStaysInside(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	engines(t, func(t *testing.T, e Engine) {
		for _, atEnd := range []bool{true, false} {
			for _, n := range []int{24, 25, 31, 47, 50} {
				p := newProduct(5, n, 3)
				p.b = fenced(t, len(p.b), atEnd)
				e.Mul(fenced(t, 4*p.ldc+n, atEnd), p.ldc, n, &p.packed, p.b, p.rows)
			}
			for n := 1; n < 20; n++ {
				e.Add(fenced(t, n, atEnd), fenced(t, n, atEnd))
				e.Prefetch(fenced(t, n, atEnd), 2000) // past the fence as well
				a, b := fenced(t, 4*n, atEnd), fenced(t, 3*n, atEnd)
				e.Dot(new(Sums), n, a, &[4]int{0, n, 2 * n, 3 * n}, b, &[3]int{0, n, 2 * n})
			}
		}
	})
}
