package ops_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// What a coding rests on, shown for every schedule that it may meet: a rank sends its
// part of a chunk once, and folds nothing in after that; then one rank has the sum, and
// its bytes, passed on as they are, are what every rank ends with. Or there is one round of
// one chunk, in which all send their parts to all.
func TestCodedSchedulesHandOver(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17} {
		for _, bytes := range []int64{0, 1 << 20} {
			all := ops.Candidates(ops.KindAllReduceCoded, n, 0, bytes, islands{n, 3})
			if len(all) < 8 {
				t.Fatalf("%d ranks have %d schedules", n, len(all))
			}
			for _, c := range all {
				if c.Schedule.Algorithm() == "one-shot" {
					if c.Schedule.String() != schedule.OneShot(n).String() {
						t.Errorf("%d ranks: not one round for all:\n%v", n, c.Schedule)
					}
				} else if err := handsOver(c.Schedule); err != nil {
					t.Errorf("%d ranks: %s: %v", n, c.Schedule.Name, err)
				}
			}
		}
	}
	for _, s := range []schedule.Schedule{schedule.Doubling(4), schedule.OneShot(3)} {
		if handsOver(s) == nil {
			t.Errorf("%s hands over, and need be neither left out nor set apart", s.Name)
		}
	}
}

// In one shot every rank encodes its part once, and all end with the sum of what the parts
// decode to, in the canonical order: also where the messages are too long to be sent before
// one is received, and where they come in pieces.
func TestCodedOneShot(t *testing.T) {
	const block = 7
	for _, count := range []int{1, 1000, 70_000} {
		for n := 2; n <= 5; n++ {
			if n > 3 && count > 1000 {
				break
			}
			xs, want := decodable(n, count, block)
			for lanes := 1; lanes <= 2; lanes++ {
				groups := make([]*ops.Group, n)
				for r, w := range memnet.New(n) {
					groups[r] = ops.NewGroup(chopper{w, 1 + 1000*lanes}, ops.Config{Algorithm: "one-shot", Lanes: lanes})
				}
				check(t, each(groups, func(g *ops.Group) error {
					x, lost := slices.Clone(xs[g.Rank()]), make([]float32, count)
					coding := ops.Coding{Codec: bytewise(block), Lost: tensor.Of(lost)}
					if err := g.AllReduceCoded(ctx, tensor.Of(x), tensor.Sum, coding).Wait(); err != nil {
						return err
					}
					if !slices.Equal(x, want) {
						return fmt.Errorf("%d elements, %d ranks, %d lanes: %v…, want %v…", count, n, lanes, x[0], want[0])
					}
					back := decoded(xs[g.Rank()], block)
					for i, v := range xs[g.Rank()] {
						if lost[i] != v-back[i] {
							return fmt.Errorf("lost %v of element %d, want %v", lost[i], i, v-back[i])
						}
					}
					return nil
				}))
			}
		}
	}
}

// decodable are ranks' elements, and the canonical sum of what they decode to.
func decodable(n, count, block int) (xs [][]float32, sum []float32) {
	parts := make([][]float32, n)
	for r := range parts {
		x, _ := tensor.Data[float32](filled(tensor.Float32, count, uint64(r), false))
		xs, parts[r] = append(xs, x), decoded(x, block)
	}
	return xs, schedule.Fold(parts, func(a, b []float32) []float32 {
		for i, v := range b {
			a[i] += v
		}
		return a
	})
}

// decoded is what comes back of elements that are encoded.
func decoded(x []float32, block int) []float32 {
	p, y := make([]byte, ops.EncodedBytes(bytewise(block), len(x))), make([]float32, len(x))
	bytewise(block).Encode32(p, x)
	bytewise(block).Decode32(y, p)
	return y
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
