package ops_test

import (
	"fmt"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
)

// What a coding rests on, shown for every schedule that it may meet: a rank sends its
// part of a chunk once, and folds nothing in after that; then one rank has the sum, and
// its bytes, passed on as they are, are what every rank ends with.
func TestCodedSchedulesHandOver(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17} {
		for _, bytes := range []int64{0, 1 << 20} {
			all := ops.Candidates(ops.KindAllReduceCoded, n, 0, bytes, islands{n, 3})
			if len(all) < 8 {
				t.Fatalf("%d ranks have %d schedules", n, len(all))
			}
			for _, c := range all {
				if err := handsOver(c.Schedule); err != nil {
					t.Errorf("%d ranks: %s: %v", n, c.Schedule.Name, err)
				}
			}
		}
	}
	for _, s := range []schedule.Schedule{schedule.Doubling(4), schedule.OneShot(3)} {
		if handsOver(s) == nil {
			t.Errorf("%s hands over, and need not be left out", s.Name)
		}
	}
}

// islands are links that are far slower between ranks of other islands.
type islands struct{ ranks, size int }

func (l islands) near(a, b int) bool { return a/l.size == b/l.size }

func (l islands) Latency(from, to int) time.Duration {
	if l.near(from, to) {
		return time.Microsecond
	}
	return 100 * time.Millisecond
}

func (l islands) Rate(from, to int) float64 {
	if l.near(from, to) {
		return 1e10
	}
	return 1e6
}

// handsOver plays a schedule with what each rank has of each chunk: its own part (-1),
// nothing that counts any more (-2), or the sum as encoded by a rank.
func handsOver(s schedule.Schedule) error {
	const part, gone = -1, -2
	has := make([][]int, s.Ranks)
	for r := range has {
		for range s.Chunks {
			has[r] = append(has[r], part)
		}
	}
	for i, round := range s.Rounds {
		type landing struct{ rank, chunk, what int }
		var land []landing
		sent := make(map[[2]int]bool) // parts
		for _, m := range round {
			for k := range m.N {
				src := &has[m.From][m.Src+k]
				switch {
				case m.Src != m.Dst:
					return fmt.Errorf("round %d: %v moves a chunk to another place", i, m)
				case m.Reduce && *src != part, *src == gone:
					return fmt.Errorf("round %d: %v sends chunk %d, which is %d", i, m, m.Src+k, *src)
				case m.Reduce && sent[[2]int{m.From, m.Src + k}]:
					return fmt.Errorf("round %d: %v sends a part twice", i, m)
				case m.Reduce:
					sent[[2]int{m.From, m.Src + k}] = true
					land = append(land, landing{m.To, m.Dst + k, part})
				case *src == part:
					*src = m.From // encodes the sum
					fallthrough
				default:
					land = append(land, landing{m.To, m.Dst + k, *src})
				}
			}
		}
		for at := range sent {
			has[at[0]][at[1]] = gone
		}
		for _, l := range land {
			dst := &has[l.rank][l.chunk]
			if (l.what == part) != (*dst == part) {
				return fmt.Errorf("round %d: %d lands on rank %d's chunk %d, which is %d", i, l.what, l.rank, l.chunk, *dst)
			}
			*dst = l.what
		}
	}
	for r := range has {
		for c, owner := range has[r] {
			if owner < 0 || owner != has[0][c] {
				return fmt.Errorf("chunk %d is rank %d's at rank %d, rank %d's at rank 0", c, owner, r, has[0][c])
			}
		}
	}
	return nil
}
