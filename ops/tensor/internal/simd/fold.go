package simd

// block is what assembly works in, in bytes: a vector register.
const block = 32

// Fold sets each element d of dst to d op s, s being src's. Both are of one
// length, whole elements, at any address. They may be the same memory, but must
// not overlap otherwise.
func (k Kernel) Fold(dst, src []byte) {
	src = src[:len(dst)] // panics here if it is short: assembly trusts its pointers
	observe(dst, src)
	k.blocks(dst, src)
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
	observe(dst, nil)
	for len(dst) > 0 {
		n := min(run, len(dst))
		k.blocks(dst[:n], src[:n])
		dst = dst[n:]
	}
}

// blocks is Fold where bounds are known to hold.
func (k Kernel) blocks(dst, src []byte) {
	whole := len(dst) &^ (block - 1)
	if whole > 0 {
		fold(k, &dst[0], &src[0], whole)
	}
	if dst, src = dst[whole:], src[whole:]; len(dst) > 0 {
		var d, s [block]byte // what is beyond the elements is folded too, and dropped
		copy(d[:], dst)
		copy(s[:], src)
		fold(k, &d[0], &s[0], block)
		copy(dst, d[:])
	}
}
