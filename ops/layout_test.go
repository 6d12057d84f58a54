package ops

import (
	"testing"

	"peermesh/ops/tensor"
)

func TestLayoutCoversEverythingOnce(t *testing.T) {
	for _, n := range []int{0, 1, 5, 16, 1003} {
		for chunks := 1; chunks <= 7; chunks++ {
			for lanes := 1; lanes <= 4; lanes++ {
				covers(t, newLayout(tensor.New(tensor.Int32, n), chunks, lanes), n)
				list := make([]tensor.Tensor, chunks)
				for c := range list {
					lo, hi := share(n, c*c, chunks*chunks) // uneven
					_, hi2 := share(n, (c+1)*(c+1)-1, chunks*chunks)
					list[c] = tensor.New(tensor.Int32, max(hi, hi2)-lo)
				}
				covers(t, listLayout(tensor.Int32, list, lanes), n)
			}
		}
	}
}

// covers checks that the spans of all chunks and lanes follow each other.
func covers(t *testing.T, l layout, n int) {
	t.Helper()
	var next int64
	for c := range l.chunks {
		for lane := range l.lanes {
			off, b := l.span(lane, c)
			if off != next || b < 0 || b%4 != 0 {
				t.Fatalf("%d in %d chunks, %d lanes: chunk %d lane %d is [%d, +%d), want it at %d", n, l.chunks, l.lanes, c, lane, off, b, next)
			}
			next += b
		}
	}
	if next != int64(4*n) {
		t.Errorf("%d in %d chunks, %d lanes: %d bytes", n, l.chunks, l.lanes, next)
	}
}
