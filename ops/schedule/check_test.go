package schedule

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// most is the largest world in which the tests prove every generator: one past
// a power of two, so that they fold none, one, some and all but one.
const most = 33

// rotated is the order of ranks that puts root first.
func rotated(n, root int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = (root + i) % n
	}
	return ranks
}

func TestEveryGeneratorKeepsItsContract(t *testing.T) {
	for n := 1; n <= most; n++ {
		for _, p := range promises(n) {
			if err := Check(p.s, p.c); err != nil {
				t.Errorf("%d ranks: %v", n, err)
			}
		}
	}
}

func TestBlocksOfSeveralChunks(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, p := range promises(n) {
			if err := Check(p.s.Refine(3), p.c); err != nil {
				t.Errorf("%d ranks, refined: %v", n, err)
			}
		}
	}
}

// A contract that every schedule kept would be worth nothing: no generator
// keeps one that is not its own.
func TestContractsTellSchedulesApart(t *testing.T) {
	const n = 6
	contracts := []Contract{
		AllReduceContract, ReduceScatterContract, AllGatherContract, AllToAllContract, BarrierContract,
		BroadcastContract(0), ReduceContract(0), GatherContract(0), ScatterContract(0), ReductionContract,
	}
	for _, p := range []struct {
		s     Schedule
		keeps []Contract
	}{
		{Ring(n), []Contract{ReduceScatterContract, ReductionContract}},
		{Ring(n).Reverse(), []Contract{AllGatherContract, GatherContract(0)}},
		{Doubling(n), []Contract{AllReduceContract, BarrierContract, ReduceContract(0)}},
		{OneShot(n), []Contract{AllReduceContract, BarrierContract, ReduceContract(0)}},
		{Binomial(n), []Contract{ReduceContract(0), ReductionContract}},
		{Binomial(n).Reverse(), []Contract{BroadcastContract(0)}},
		{BinomialGather(n), []Contract{GatherContract(0)}},
		{BinomialGather(n).Reverse(), []Contract{ScatterContract(0)}},
		{Tree(n, 6), []Contract{ReduceContract(0), ReductionContract}},
		{Cascade(n), []Contract{ReduceScatterContract, ReductionContract}},
		{Direct(n), []Contract{ReduceScatterContract, ReductionContract}},
		{Bruck(n).Reverse(), []Contract{AllGatherContract, GatherContract(0)}},
		{BruckAllToAll(n), []Contract{AllToAllContract}},
		{Pairwise(n), []Contract{AllToAllContract}},
		{Dissemination(n), []Contract{BarrierContract}},
		{Broadcast(Ring(n), 0), []Contract{BroadcastContract(0), ScatterContract(0)}},
		{Reduce(Ring(n), 0), []Contract{ReduceContract(0), ReduceScatterContract}},
		{AllReduce(Ring(n)), []Contract{AllReduceContract, BarrierContract, ReduceScatterContract, ReduceContract(0)}},
	} {
		for _, c := range contracts {
			want := slices.Contains(p.keeps, c)
			if err := Check(p.s, c); (err == nil) != want {
				t.Errorf("%s as %v: %v", p.s.Name, c, err)
			}
		}
	}
}

// Every refusal says where: round, move, chunk, rank.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		text     string
		contract Contract
		want     string
	}{
		{"twice: 3 ranks, 1 chunks\n  0   0→1 [0]+\n  1   0→1 [0]+  1→2 [0]+\n", ReduceContract(1),
			"schedule: twice is no reduce to rank 1: chunk 0 of rank 1, last written in round 1 by 0→1 [0]+, " +
				"went wrong in round 1: 0→1 [0]+: rank 0's contribution is counted twice"},
		{"lost: 3 ranks, 1 chunks\n  0   0→1 [0]+\n  1   2→1 [0]\n  2   2→1 [0]+\n", ReduceContract(1),
			"schedule: lost is no reduce to rank 1: chunk 0 of rank 1, last written in round 2 by 2→1 [0]+, " +
				"went wrong in round 2: 2→1 [0]+: rank 2's contribution is counted twice"},
		{"short: 3 ranks, 1 chunks\n  0   0→1 [0]+\n", ReduceContract(1),
			"schedule: short is no reduce to rank 1: chunk 0 of rank 1, last written in round 0 by 0→1 [0]+, " +
				"lacks the contribution of rank 2"},
		{"idle: 2 ranks, 1 chunks\n", AllReduceContract,
			"schedule: idle is no all-reduce: chunk 0 of rank 0, where nothing lands, lacks the contribution of rank 1"},
		{"crossed: 2 ranks, 2 chunks\n  0   0→1 [0]→[1]+\n  1   1→0 [1]\n", ReduceContract(0),
			"schedule: crossed is no reduce to rank 0: chunk 0 of rank 0, where nothing lands, lacks the contribution of rank 1"},
		{"mixed: 2 ranks, 2 chunks\n  0   0→1 [0:2]+\n  1   0→1 [0]→[1]+\n", ReduceContract(1),
			"schedule: mixed is no reduce to rank 1: chunk 1 of rank 1, last written in round 1 by 0→1 [0]→[1]+, " +
				"went wrong in round 1: 0→1 [0]→[1]+: chunk 0 of rank 0 meets a sum of 2 with chunk 1 of rank 1 in it"},
		{"astray: 2 ranks, 2 chunks\n  0   0→1 [0:2]+\n  1   1→1 [0]\n", ReduceContract(1),
			"schedule: round 1: 1→1 [0]: rank 1 sends to itself"},
		{"moved: 2 ranks, 2 chunks\n  0   0→1 [0:2]+\n  1   1→0 [0]→[1]\n  2   0→1 [1]\n", ReduceContract(1),
			"schedule: moved is no reduce to rank 1: chunk 1 of rank 1, last written in round 2 by 0→1 [1], is made of chunk 0"},
		{"collide: 3 ranks, 2 chunks\n  0   0→2 [0:2]+  1→2 [1]\n", ReduceContract(2),
			"schedule: collide is no reduce to rank 2: round 0: 1→2 [1]: lands on chunk 1 of rank 2, as 0→2 [0:2]+ does"},
		{"double: 3 ranks, 2 chunks\n  0   0→2 [0]+  1→2 [0]+  0→2 [1]→[0]+\n", ReduceContract(2),
			"schedule: double is no reduce to rank 2: round 0: 0→2 [1]→[0]+: lands on chunk 0 of rank 2, as 0→2 [0]+ does"},
		{"spread: 3 ranks, 1 chunks\n  0   0→1 [0]\n", BroadcastContract(0),
			"schedule: spread is no broadcast from rank 0: chunk 0 of rank 2, where nothing lands, " +
				"is chunk 0 of rank 2, not chunk 0 of rank 0"},
		{"twofold: 2 ranks, 1 chunks\n  0   0→1 [0]+  1→0 [0]+\n", ReductionContract,
			"schedule: twofold is no reduction: chunk 0 of rank 1, last written in round 0 by 0→1 [0]+, is whole, as it is on rank 0"},
		{"nowhere: 2 ranks, 2 chunks\n  0   0→1 [0]+\n", ReductionContract,
			"schedule: nowhere is no reduction: whole nowhere: chunk 1 of rank 0, where nothing lands, lacks the contribution of rank 1"},
		{"odd: 2 ranks, 3 chunks\n", AllGatherContract,
			"schedule: odd is no all-gather: 3 chunks cannot be dealt to 2 ranks"},
		{"rootless: 2 ranks, 1 chunks\n", BroadcastContract(2),
			"schedule: rootless is no broadcast from rank 2: no rank 2 among 2"},
	} {
		s, err := Parse(c.text)
		if err == nil {
			err = Check(s, c.contract)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Dissemination among a power of two adds up every contribution once, on every
// rank, but in as many orders. Only the third part of the proof objects, and
// floats show that it is right to. Doubling passes by the same measure.
func TestBitAgreement(t *testing.T) {
	for _, n := range []int{4, 8, 16} {
		s := Dissemination(n)
		if err := sums(s, AllReduceContract, 1); err != nil {
			t.Errorf("the integers should be right: %v", err)
		}
		if err := Check(s, AllReduceContract); err == nil || !strings.Contains(err.Error(), "another order") {
			t.Errorf("got %v", err)
		}
		differ := 0
		for seed := range uint64(100) {
			if replicas(s, seed) != nil {
				differ++
			}
			if err := replicas(Doubling(n), seed); err != nil {
				t.Errorf("doubling: %v", err)
			}
		}
		if differ == 0 {
			t.Errorf("among %d no replicas ever differed", n)
		}
	}
	err := Check(Dissemination(3), AllReduceContract)
	if err == nil || !strings.Contains(err.Error(), "counted twice") {
		t.Errorf("got %v", err)
	}
}

func TestMalformed(t *testing.T) {
	good := Move{From: 0, To: 1, Src: 1, Dst: 1, N: 2}
	for _, c := range []struct {
		bend func(*Move)
		want string
	}{
		{func(m *Move) {}, "lacks"}, // well formed, only no all-reduce
		{func(m *Move) { m.From = -1 }, "round 1: -1→1 [1:3]: no rank -1 among 2"},
		{func(m *Move) { m.To = 2 }, "round 1: 0→2 [1:3]: no rank 2 among 2"},
		{func(m *Move) { m.To = 0 }, "round 1: 0→0 [1:3]: rank 0 sends to itself"},
		{func(m *Move) { m.N = 0 }, "round 1: 0→1 [1:1]: moves 0 chunks"},
		{func(m *Move) { m.N = -1 }, "moves -1 chunks"},
		{func(m *Move) { m.Src = 2 }, "round 1: 0→1 [2:4]→[1:3]: outside the 3 chunks"},
		{func(m *Move) { m.Dst = 2 }, "outside the 3 chunks"},
		{func(m *Move) { m.Dst = -1 }, "outside the 3 chunks"},
		{func(m *Move) { m.N = math.MaxInt }, "outside the 3 chunks"},
		{func(m *Move) { m.Src = math.MaxInt }, "outside the 3 chunks"},
	} {
		m := good
		c.bend(&m)
		err := Check(Schedule{Ranks: 2, Chunks: 3, Rounds: []Round{nil, {m}}}, AllReduceContract)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", m, err, c.want)
		}
	}
	for _, s := range []Schedule{{}, {Ranks: 1}, {Ranks: -1, Chunks: 1}, {Ranks: MaxCells, Chunks: 2}} {
		if Check(s, AllReduceContract) == nil {
			t.Errorf("%d ranks, %d chunks are allowed", s.Ranks, s.Chunks)
		}
	}
}

func TestCheckIsBounded(t *testing.T) {
	s := Schedule{Ranks: 2, Chunks: MaxLandings / 8}
	for range 9 {
		s.Rounds = append(s.Rounds, Round{{From: 0, To: 1, N: s.Chunks}})
	}
	if err := Check(s, BroadcastContract(0)); err == nil || !strings.Contains(err.Error(), "carried") {
		t.Errorf("got %v", err)
	}
	// A sum that doubles each round has 2¹⁰⁰ leaves; it must still be refused
	// at once.
	s = Schedule{Ranks: 2, Chunks: 1}
	for range 100 {
		s.Rounds = append(s.Rounds, Round{{From: 0, To: 1, N: 1, Reduce: true}, {From: 1, To: 0, N: 1, Reduce: true}})
	}
	if err := Check(s, AllReduceContract); err == nil || !strings.Contains(err.Error(), "round 1: 0→1 [0]+") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := AllReduce(Ring(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(s, AllReduceContract); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
