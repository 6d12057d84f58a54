package tensor

import "unsafe"

// A kernel folds src into dst, dst[i] = op(dst[i], src[i]), both of one length
// that is a multiple of the element size, at any address. The slices may be the
// same; if they overlap otherwise, the result is unspecified.
type kernel func(dst, src []byte)

// A column is an element type's kernels, by Op. The columns side by side are
// the table [dtype][op] that every reduction on the host goes through, and the
// one place where a faster kernel is put in.
type column [len(opNames)]kernel

func columnOf[T Element]() column {
	return column{
		Sum:     sum[T],
		Product: product[T],
		Min:     minimum[T],
		Max:     maximum[T],
	}
}

// Each kernel is a loop of its own, because a Go function value is not inlined
// and a call an element costs ten times the arithmetic.

func sum[T Element](dst, src []byte) {
	var s stage[T]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] += x
		}
		s.done()
	}
}

func product[T Element](dst, src []byte) {
	var s stage[T]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] *= x
		}
		s.done()
	}
}

func minimum[T Element](dst, src []byte) {
	var s stage[T]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] = min(d[i], x)
		}
		s.done()
	}
}

func maximum[T Element](dst, src []byte) {
	var s stage[T]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] = max(d[i], x)
		}
		s.done()
	}
}

// stageLen is the number of elements staged at a time: a block and its copy
// stay in the first-level cache.
const stageLen = 256

// A stage hands bytes to a kernel as elements. Aligned bytes it lends as they
// are; the others it carries through aligned blocks, a copy within the cache.
// That is right on every machine, where a load from an odd address is not.
type stage[T Element] struct {
	dst, src [stageLen]T
	back     []byte // where dst's block belongs; nil if it was lent in place
}

// next takes the next elements off dst and src, as many of each.
func (s *stage[T]) next(dst, src *[]byte) (d, v []T) {
	d, inPlace := elements[T](*dst)
	v, ok := elements[T](*src)
	if inPlace && ok {
		*dst, *src = nil, nil
		return d, v
	}
	n := min(len(*src), stageLen*int(unsafe.Sizeof(s.src[0])))
	db, vb := (*dst)[:n], (*src)[:n]
	*dst, *src = (*dst)[n:], (*src)[n:]
	count := n / int(unsafe.Sizeof(s.src[0]))
	copy(bytesOf(s.src[:]), vb)
	if inPlace {
		return d[:count], s.src[:count]
	}
	copy(bytesOf(s.dst[:]), db)
	s.back = db
	return s.dst[:count], s.src[:count]
}

// done puts a block that was not lent in place back to where it belongs.
func (s *stage[T]) done() {
	copy(s.back, bytesOf(s.dst[:]))
}

// bytesOf is the memory of x.
func bytesOf[T Element](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	n := len(x) * int(unsafe.Sizeof(x[0]))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// elements is the reverse of bytesOf. It fails where p is not aligned for T.
func elements[T Element](p []byte) ([]T, bool) {
	var zero T
	at := unsafe.Pointer(unsafe.SliceData(p))
	if uintptr(at)%unsafe.Alignof(zero) != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(at), len(p)/int(unsafe.Sizeof(zero))), true
}
