package ops_test

import (
	"fmt"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/conform"
	"peermesh/testnet/memnet"
)

// Some ranks of a world, in an order of their own, are a transport as good as any.
func TestSubworldConforms(t *testing.T) {
	if raceDetector {
		t.Skip("moves 60 MiB; the crowd is raced")
	}
	conform.Transport(t, func(t *testing.T, n int) (ends []ops.Transport) {
		worlds := memnet.New(n + 2)
		list := []int{n + 1, 0, 3, 2}[:n]
		for _, r := range list {
			ends = append(ends, ops.SubworldOf(worlds[r], list))
		}
		return ends
	})
}

func TestSubworldFromOutside(t *testing.T) {
	w := ops.SubworldOf(memnet.New(3)[1], []int{0, 2})
	if w.Rank() != -1 || w.Size() != 2 {
		t.Errorf("rank %d of %d", w.Rank(), w.Size())
	}
	if err := w.Signal(0, 0, nil); err == nil {
		t.Error("a stranger sent a signal")
	}
}

// An ID that one member has in use is passed over by all.
func TestIDsInUse(t *testing.T) {
	const n = 4
	got := make([]uint32, n)
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		ops.TakeSalts(g, 0, []int{0, 3, 1, 0}[g.Rank()])
		some, err := g.Split(ctx, []int{0, 1, 2, 3})
		if err != nil {
			return err
		}
		got[g.Rank()] = some.ID()
		if total, err := sum(some, g.Rank()); err != nil || total != 6 {
			return fmt.Errorf("sum %d: %w", total, err)
		}
		return nil
	}))
	for r, id := range got {
		if id != got[0] {
			t.Errorf("rank %d has ID %#x, rank 0 has %#x", r, id, got[0])
		}
	}
}

func TestNoIDIsFree(t *testing.T) {
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() == 1 {
			ops.TakeSalts(g, 0, 64)
		}
		if _, err := g.Split(ctx, []int{0, 1}); err == nil {
			return fmt.Errorf("made a group")
		}
		_, err := g.Split(ctx, []int{0, 1}) // another call, other IDs
		return err
	}))
}
