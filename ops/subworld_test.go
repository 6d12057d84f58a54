package ops

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"peermesh/ops/schedule"
)

// SubworldOf lets conform hold a subworld to its contract.
func SubworldOf(t Transport, list []int) Transport { return among(t, list) }

func TestSaltedIDs(t *testing.T) {
	seen := make(map[uint32]bool)
	for _, parent := range []uint32{0, 1, madeID, madeID + 1} {
		for seq := range uint64(20) {
			for salt := range salts {
				id := saltedID(parent, seq, salt)
				if id&madeID == 0 || seen[id] {
					t.Errorf("parent %d, call %d, salt %d: ID %#x", parent, seq, salt, id)
				}
				seen[id] = true
			}
		}
	}
}

// What one call holds, another is not offered, until it is settled.
func TestIDsAreHeldUntilSettled(t *testing.T) {
	var s ids
	all := s.offer(7, 1)
	if all != ^uint64(0) {
		t.Fatalf("offered %x", all)
	}
	if again := s.offer(7, 1); again != 0 {
		t.Fatalf("offered %x twice", again)
	}
	s.settle(7, 1, all, 5)
	left := s.offer(7, 1)
	if left != ^uint64(1<<5) {
		t.Errorf("offered %x after salt 5 was kept", left)
	}
	s.settle(7, 1, left, -1)
	if len(s.taken) != 1 {
		t.Errorf("%d IDs taken", len(s.taken))
	}
}

func TestCommonSalt(t *testing.T) {
	table := func(offers ...uint64) (table []int64) {
		for _, o := range offers {
			table = append(table, 1, 2, int64(o))
		}
		return table
	}
	for _, c := range []struct {
		table []int64
		want  int
	}{
		{table(^uint64(0), ^uint64(0)), 0},
		{table(^uint64(1), ^uint64(0), ^uint64(2)), 2},
		{table(1<<63, ^uint64(0)), 63},
		{table(1, 2), -1},
	} {
		if got := commonSalt(c.table); got != c.want {
			t.Errorf("%b: salt %d, want %d", c.table, got, c.want)
		}
	}
}

// takeSalts makes the first IDs that call seq of g could give unfree on this rank.
func takeSalts(g *Group, seq uint64, n int) {
	offered := g.root.ids.offer(g.id, seq)
	for range n {
		offered &^= 1 << bits.TrailingZeros64(offered)
	}
	g.root.ids.settle(g.id, seq, offered, -1)
}

// TakeSalts lets a test of whole worlds arrange for IDs that are not free.
var TakeSalts = takeSalts

// ID is the group's, for tests.
func (g *Group) ID() uint32 { return g.id }

func TestLinksAmong(t *testing.T) {
	l := linksAmong{grid{}, ranks{n: 2, list: []int{3, 1}}}
	if l.Latency(0, 1) != 31 || l.Rate(1, 0) != 13 {
		t.Errorf("%v, %v", l.Latency(0, 1), l.Rate(1, 0))
	}
}

type grid struct{}

func (grid) Latency(from, to int) time.Duration { return time.Duration(10*from + to) }
func (grid) Rate(from, to int) float64          { return float64(10*from + to) }

var _ schedule.Links = grid{}

func TestRanks(t *testing.T) {
	some := ranks{n: 3, list: []int{5, 2, 9}}
	for i, w := range some.list {
		if got, ok := some.local(w); got != i || !ok || some.world(i) != w {
			t.Errorf("member %d is %d, and back %d", i, w, got)
		}
	}
	for _, stranger := range []int{-1, 0, 3} {
		if _, ok := some.local(stranger); ok {
			t.Errorf("rank %d is a member", stranger)
		}
		if _, ok := (ranks{n: 3}).local(stranger); ok != (stranger == 0) {
			t.Errorf("rank %d of all: %v", stranger, ok)
		}
	}
}

func TestPlanDigest(t *testing.T) {
	digests := []uint32{
		planDigest("lists", nil), planDigest("lists", [][]int{{0, 1}, {2}}), planDigest("lists", [][]int{{0}, {1, 2}}),
		planDigest("lists", [][]int{{2}, {0, 1}}), planDigest("members", [][]int{{0, 1}, {2}}), planDigest("lists", [][]int{{0, 1, 2}}),
	}
	slices.Sort(digests)
	if len(slices.Compact(digests)) != 6 {
		t.Error("two plans have one digest")
	}
}
