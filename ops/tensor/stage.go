package tensor

import "unsafe"

// stageLen is the number of elements staged at a time: a block and its copy
// stay in the first-level cache.
const stageLen = 256

// A stage hands bytes to a kernel as numbers: elements of type T, computed as C.
// Bytes that are a []C already, aligned, it lends as they are; others it carries
// through aligned blocks, a copy within the cache. That is right on every
// machine, where a load from an odd address is not.
type stage[T, C Element] struct {
	dst, src [stageLen]C
	back     []byte // where dst's block belongs; nil if it was lent in place
}

// next takes the next elements off dst and src, as many of each.
func (s *stage[T, C]) next(dst, src *[]byte) (d, v []C) {
	d, inPlace := lend[T, C](*dst)
	v, ok := lend[T, C](*src)
	if inPlace && ok {
		*dst, *src = nil, nil
		return d, v
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	n := min(len(*src), stageLen*size)
	db, vb := (*dst)[:n], (*src)[:n]
	*dst, *src = (*dst)[n:], (*src)[n:]
	count := n / size
	load[T](s.src[:count], vb)
	if inPlace {
		return d[:count], s.src[:count]
	}
	load[T](s.dst[:count], db)
	s.back = db
	return s.dst[:count], s.src[:count]
}

// done puts a block that was not lent in place back to where it belongs.
func (s *stage[T, C]) done() {
	if s.back != nil {
		var zero T
		store[T](s.back, s.dst[:len(s.back)/int(unsafe.Sizeof(zero))])
	}
}

// lend is p as it lies, if its elements are computed as they are.
func lend[T, C Element](p []byte) ([]C, bool) {
	if !same[T, C]() || same[T, bool]() { // a byte is no bool yet
		return nil, false
	}
	return elements[C](p)
}

// load is the elements in p as numbers to compute with.
func load[T, C Element](to []C, p []byte) {
	switch {
	case same[T, bool]():
		normalise(bytesOf(to), p)
	case same[T, C]():
		copy(bytesOf(to), p)
	default:
		from, ok := elements[T](p)
		if !ok {
			var block [stageLen]T
			from = block[:len(to)]
			copy(bytesOf(from), p)
		}
		if same[T, F16]() {
			widenF16(as[float32](to), as[F16](from))
		} else {
			widenBF16(as[float32](to), as[BF16](from))
		}
	}
}

// store is the reverse of load.
func store[T, C Element](p []byte, from []C) {
	if same[T, C]() || same[T, bool]() {
		copy(p, bytesOf(from))
		return
	}
	to, aligned := elements[T](p)
	if !aligned {
		var block [stageLen]T
		to = block[:len(from)]
	}
	if same[T, F16]() {
		narrowF16(as[F16](to), as[float32](from))
	} else {
		narrowBF16(as[BF16](to), as[float32](from))
	}
	if !aligned {
		copy(p, bytesOf(to))
	}
}

// same reports whether T and U are one type.
func same[T, U Element]() bool {
	var t T
	var u U
	return any(t) == any(u)
}

// as is x, whose elements are of type To, under that name.
func as[To, From Element](x []From) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
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
