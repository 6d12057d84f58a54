package blocks

// Lanes is how many elements a kernel takes at a time.
const Lanes = 32

// whole is how many of n elements a kernel takes.
func whole(n int) int {
	if !available {
		return 0
	}
	return n / Lanes * Lanes
}

// Greatest is the greatest of the magnitudes' bits of the first n elements.
func Greatest(x []float32) (most uint32, n int) {
	if n = whole(len(x)); n > 0 {
		most = greatest(n, &x[0])
	}
	return most, n
}

// EncodeInt8 writes the integers nearest to the products of the first n elements and
// inverse, which are of −127 to 127 or of no number, one a byte. q has a byte for each of x.
func EncodeInt8(q []byte, x []float32, inverse float32) (n int) {
	if n = whole(len(x)); n > 0 {
		_ = q[n-1] // the kernel knows no lengths: what is too short stops here
		encodeInt8(n, &q[0], &x[0], inverse)
	}
	return n
}

// DecodeInt8 writes the products of the integers in q and unit to the first n elements.
func DecodeInt8(x []float32, q []byte, unit float32) (n int) {
	if n = whole(len(x)); n > 0 {
		_ = q[n-1]
		decodeInt8(n, &x[0], &q[0], unit)
	}
	return n
}

// EncodeInt4 is EncodeInt8 with integers of −7 to 7, two a byte, the first in its lower half.
func EncodeInt4(q []byte, x []float32, inverse float32) (n int) {
	if n = whole(len(x)); n > 0 {
		_ = q[n/2-1]
		encodeInt4(n, &q[0], &x[0], inverse)
	}
	return n
}

// DecodeInt4 is the reverse of EncodeInt4, also of −8.
func DecodeInt4(x []float32, q []byte, unit float32) (n int) {
	if n = whole(len(x)); n > 0 {
		_ = q[n/2-1]
		decodeInt4(n, &x[0], &q[0], unit)
	}
	return n
}
