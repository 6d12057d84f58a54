//go:build linux

package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// guard is what lies about a piece, and is not to change.
const guard = 80

// pieceOf are n bytes of chance that begin at a place of the wanted alignment, with a guard
// before and behind.
func pieceOf(n, align int) (all, piece []byte) {
	all = make([]byte, guard+lineSize+n+guard)
	for i := range all {
		all[i] = byte(rand.Uint32())
	}
	return all, all[guard+align : guard+align+n]
}

func TestPour(t *testing.T) {
	t.Parallel()
	lengths := []int{0, 1, 63, 64, 65, 127, 128, 129, 1000, leastPoured - 1, leastPoured, leastPoured + 1, quantum}
	for _, n := range lengths {
		for to := range lineSize {
			from := (to * 7) % lineSize
			all, dst := pieceOf(n, to)
			_, src := pieceOf(n, from)
			want := bytes.Clone(all)
			copy(want[guard+to:], src)
			if k := pour(dst, src); k != n || !bytes.Equal(all, want) {
				t.Fatalf("%d bytes from %d to %d: says %d, and they are not what was copied", n, from, to, k)
			}
		}
	}
}

// Whatever a pourer takes the other end for, bytes are copied: as many as fit, and no more.
func TestPourerCopies(t *testing.T) {
	t.Parallel()
	var p pourer
	ways := map[bool]int{}
	for i := range 5 * trialEvery {
		n, room := rand.IntN(2*quantum), rand.IntN(2*quantum)
		all, dst := pieceOf(room, i%lineSize)
		_, src := pieceOf(n, i*3%lineSize)
		want := bytes.Clone(all)
		copy(want[guard+i%lineSize:][:room], src)
		if k := p.copy(dst, src); k != min(n, room) || !bytes.Equal(all, want) {
			t.Fatalf("%d bytes into %d: says %d, or they are not what was copied", n, room, k)
		}
		ways[p.past]++
		if p.left > 0 && i%trialEvery == 0 {
			p.past = !p.past
		}
	}
	if len(ways) != 2 {
		t.Errorf("went %v ways", ways)
	}
}

func TestPourerJudges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		plain, past float64 // nanoseconds a byte
		want        bool
	}{
		{"near: both as fast as a cache", 0.04, 0.03, false},
		{"near: memory is slower", 0.06, 0.12, false},
		{"far: lines are taken from there", 0.17, 0.03, true},
		{"far, from memory", 0.16, 0.05, true},
	} {
		p := pourer{past: !c.want}
		p.judge(c.plain)
		if p.left != -1 || p.past == c.want {
			t.Errorf("%s: has judged by half a trial: %+v", c.name, p)
		}
		if p.judge(c.past); p.past != c.want || p.left != trialEvery {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// A piece is tried each way, then as many go as it was found until the next trial. Short
// ones count for nothing.
func TestPourerTries(t *testing.T) {
	t.Parallel()
	var p pourer
	dst, src := make([]byte, quantum), make([]byte, quantum)
	for trial := range 3 {
		for i := range trialEvery + 2 {
			if p.copy(dst, src[:leastPoured-1]); i == 0 && p.left != 0 || i == 1 && p.left != -1 {
				t.Fatalf("trial %d, piece %d: %+v", trial, i, p)
			}
			p.copy(dst, src)
		}
		if p.left != 0 {
			t.Fatalf("trial %d: %+v", trial, p)
		}
	}
}

// What a piece costs where nobody else has its lines.
func BenchmarkPour(b *testing.B) {
	dst, src := make([]byte, quantum), make([]byte, quantum)
	for name, put := range map[string]func(dst, src []byte) int{"past": pour, "into": copied} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(quantum)
			for b.Loop() {
				put(dst, src)
			}
		})
	}
}
