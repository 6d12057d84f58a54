package planet

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/internal/bytesize"
	"peermesh/ops/schedule"
)

// Every contender is an all_reduce, however many ranks and regions there are.
func TestContendersAreRight(t *testing.T) {
	for _, n := range []int{2, 3, 8, 9, 16, 17, 25, 40} {
		w := Earth().World(n)
		for _, c := range w.Contenders() {
			s := c.Plan(1 << 20).Schedule()
			if s.Ranks*s.Chunks > 1<<14 {
				continue // to prove it would take seconds
			}
			if err := schedule.Check(s, schedule.AllReduceContract); err != nil {
				t.Errorf("%d ranks, %s: %v", n, c.Name, err)
			}
		}
	}
}

// What is priced is what is played, to the nanosecond, where no rank hears from two at
// once; there the order of arrival may be another than that of the schedule.
func TestPlayedAsPriced(t *testing.T) {
	for _, n := range []int{2, 5, 8, 24, 50} {
		w := Earth().World(n)
		for _, bytes := range []int{8, 1 << 16, 1 << 24} {
			for _, c := range w.Contenders() {
				price := c.Price(bytes)
				played, err := c.Plan(bytes).Play(bytes, w)
				if err != nil {
					t.Fatal(err)
				}
				if off := (played - price).Abs(); off > 0 && (singly(c.Plan(bytes)) || off > price/20) {
					t.Errorf("%d ranks, %d bytes, %s: priced at %v, played in %v", n, bytes, c.Name, price, played)
				}
			}
		}
	}
}

// singly reports whether no rank ever hears from two at once.
func singly(p Plan) bool {
	for round := range p.Rounds {
		heard := make(map[int]bool)
		for _, m := range round {
			if heard[m.To] {
				return false
			}
			heard[m.To] = true
		}
	}
	return true
}

// The closed form of the ring is the price of its moves, on any map.
func TestRingPrice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := &Map{Rate: 1e6 + rng.Float64()*1e8}
		regions := 1 + rng.IntN(6)
		for i := range regions {
			m.Names = append(m.Names, string(rune('a'+i)))
			m.RTT = append(m.RTT, make([]time.Duration, regions))
			for j := range i + 1 {
				m.RTT[i][j] = time.Duration(rng.IntN(400)) * time.Millisecond
				m.RTT[j][i] = m.RTT[i][j]
			}
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		n, bytes := 1+rng.IntN(30), rng.IntN(1<<22)
		w := m.World(n)
		order := rng.Perm(n)
		if got, want := w.RingPrice(order, bytes), ring(n).On(order).Price(bytes, w); got != want {
			t.Fatalf("%d ranks in %d regions, %d bytes: closed form %v, move by move %v", n, regions, bytes, got, want)
		}
	}
}

// The ring, round by round, is that of package schedule.
func TestRingIsTheRing(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 16} {
		got, want := ring(n).Schedule(), schedule.AllReduce(schedule.Ring(n))
		if !slices.EqualFunc(got.Rounds, want.Rounds, func(a, b schedule.Round) bool { return slices.Equal(a, b) }) {
			t.Errorf("%d ranks: %v, want %v", n, got, want)
		}
		if p := ring(n); p.Moves != PlanOf(want).Moves {
			t.Errorf("%d ranks: %d moves, want %d", n, p.Moves, PlanOf(want).Moves)
		}
	}
}

// At 1,000 ranks, and with PEERMESH_SCALE set at 10,000, few bytes go by heads, many by rings inside regions, and the ring is
// out of the question; nobody beats the bound.
func TestManyRanks(t *testing.T) {
	n := 1000
	if os.Getenv("PEERMESH_SCALE") != "" {
		n *= 10
	}
	w := Earth().World(n)
	table := NewTable(w, []int{8, 1 << 30})
	for i, want := range []string{"heads", "two levels, rings"} {
		first, second := table.Winner(i)
		if got := table.Contenders[first].Name; got != want {
			t.Errorf("%s go by %s, want %s", bytesize.Text(int64(table.Sizes[i])), got, want)
		}
		if table.Prices[first][i] < table.Bounds[i] || table.Prices[second][i] < table.Prices[first][i] {
			t.Errorf("%s: %v, the next %v, the bound %v", bytesize.Text(int64(table.Sizes[i])), table.Prices[first][i], table.Prices[second][i], table.Bounds[i])
		}
	}
}

// A plan that is wrong is found out, and one too large is not played.
func TestPlayErrors(t *testing.T) {
	w := Earth().World(8)
	big := ring(10_000)
	if _, err := big.Play(1, w); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("200 million moves: %v", err)
	}
	if d, err := (Plan{Ranks: 3, Chunks: 1, Rounds: slices.Values([]schedule.Round(nil))}).Play(1, w); d != 0 || err != nil {
		t.Errorf("nothing takes %v, %v", d, err)
	}
}
