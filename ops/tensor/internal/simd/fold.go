package simd

// block is what assembly works in, in bytes: a vector register.
const block = 32

// Fold sets each element d of dst to d op s, where s is src's. Both slices are
// whole elements, at any address; src may be longer. They may be the same memory,
// but must not overlap otherwise.
func (k Kernel) Fold(dst, src []byte) {
	src = src[:len(dst)] // bounds are checked here: assembly trusts its pointers
	observe(dst, src)
	whole := len(dst) &^ (block - 1)
	if whole > 0 {
		fold(k, &dst[0], &src[0], whole)
	}
	if dst, src = dst[whole:], src[whole:]; len(dst) > 0 {
		var d, s [block]byte // elements that are not there are zeros, and go nowhere
		copy(d[:], dst)
		copy(s[:], src)
		fold(k, &d[0], &s[0], block)
		copy(dst, d[:])
	}
}

// run bounds the copies of a single operand, in bytes: so many that a call is
// nothing beside them, so few that they stay in the nearest cache.
const run = 1024

// FoldEach sets each element d of dst to d op x, x being the bytes of one
// element.
func (k Kernel) FoldEach(dst, x []byte) {
	var src [run]byte
	for i := 0; i < min(run, len(dst)); {
		i += copy(src[i:], x)
	}
	for len(dst) > 0 {
		n := min(run, len(dst))
		k.Fold(dst[:n], src[:n])
		dst = dst[n:]
	}
}
