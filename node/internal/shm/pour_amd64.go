//go:build linux

package shm

import (
	"time"
	"unsafe"
)

const (
	// lineSize is a cache line.
	lineSize = 64
	// leastPoured is the shortest piece that is worth to be asked about. What is shorter
	// had better stay in the caches.
	leastPoured = 8 << 10
	// trialEvery is how many pieces go between two trials: what is lost by one that was
	// disturbed is made good by the next.
	trialEvery = 64
	// tooDear is how much longer a piece takes into the caches than past them where the
	// other end is far.
	tooDear = 2
)

// A pourer copies what is written into a ring, past the caches where that is better.
//
// To write to a line of memory that the other end has read is to take it from that
// processor. Where the two have a cache in common this hardly shows. Where they have not
// it takes four times as long as all else, and a store that goes past the caches need not
// take the line, only have the other drop it; but the reader then has to fetch it from
// memory, which is slower than from a common cache. The system moves processes, and a
// hypervisor processors, so that one and the same pair is now near and now far. It shows
// in the time that the writer takes, and so each way is tried now and then.
type pourer struct {
	past  bool    // the other end is far
	left  int     // pieces until the next trial, whose second half is at −1
	plain float64 // what the first half took, in nanoseconds a byte
}

// copy copies as the builtin does.
func (p *pourer) copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < leastPoured {
		return copy(dst, src)
	}
	if p.left > 0 {
		p.left--
		if p.past {
			return pour(dst[:n], src)
		}
		return copy(dst, src)
	}
	start, put := time.Now(), pour
	if p.left == 0 {
		put = copied
	}
	n = put(dst[:n], src)
	p.judge(float64(time.Since(start)) / float64(n))
	return n
}

// judge takes what half of a trial took, in nanoseconds a byte.
func (p *pourer) judge(took float64) {
	if p.left == 0 {
		p.plain, p.left = took, -1
		return
	}
	p.past, p.left = p.plain > tooDear*took, trialEvery
}

// copied is the builtin, as a value.
func copied(dst, src []byte) int { return copy(dst, src) }

// pour copies len(dst) bytes of src past the caches, but for what is not a whole line of
// dst.
func pour(dst, src []byte) int {
	n := len(dst)
	k := min(n, int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst)))&(lineSize-1)))
	m := (n - k) &^ (lineSize - 1)
	copy(dst[:k], src)
	if m > 0 {
		pourLines(&dst[k], &src[k : k+m][0], m)
	}
	copy(dst[k+m:], src[k+m:])
	return n
}

// pourLines copies n bytes, more than none, to whole lines.
//
//go:noescape
func pourLines(dst, src *byte, n int)
