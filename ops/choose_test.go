package ops

import (
	"testing"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// contract is what an operation's schedules must do.
func contract(k Kind) schedule.Contract {
	switch k {
	case KindAllReduce:
		return schedule.AllReduceContract
	case KindReduceScatter:
		return schedule.ReduceScatterContract
	case KindAllGather:
		return schedule.AllGatherContract
	case KindReduce:
		return schedule.ReduceContract(0)
	case KindBroadcast:
		return schedule.BroadcastContract(0)
	default:
		return schedule.BarrierContract
	}
}

func TestEveryCandidateIsProved(t *testing.T) {
	for k := KindAllReduce; k <= KindBarrier; k++ {
		for n := 1; n <= 17; n++ {
			all := candidates(k, n)
			if len(all) == 0 {
				t.Errorf("%v, %d ranks: no schedule", k, n)
			}
			names := map[string]bool{}
			for _, s := range all {
				if err := schedule.Check(s, contract(k)); err != nil {
					t.Errorf("%v, %d ranks, %s: %v", k, n, s.Name, err)
				}
				names[algorithm(s)] = true
			}
			if len(names) != len(all) {
				t.Errorf("%v, %d ranks: names %v are not unique", k, n, names)
			}
		}
	}
}

// Small is bound by latency, large by bytes.
func TestChoice(t *testing.T) {
	for bytes, want := range map[int64]string{8: "doubling", 64 << 20: "ring"} {
		var p plans
		p.init(5, 0, Config{Links: DefaultLinks})
		got, err := p.choose(KindAllReduce, noRoot, bytes)
		if err != nil || algorithm(got.schedule) != want {
			t.Errorf("%d bytes: %s, want %s (%v)", bytes, got.schedule.Name, want, err)
		}
	}
}

// All ranks choose alike, whatever they chose before, and what is kept is bounded.
func TestChoicesAgree(t *testing.T) {
	var a, b plans
	a.init(6, 0, Config{Links: DefaultLinks})
	b.init(6, 5, Config{Links: DefaultLinks})
	for n := int64(0); n < 1<<22; n = n*3 + 1 {
		for k := KindAllReduce; k <= KindBarrier; k++ {
			p, err := a.choose(k, 2, n)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = b.choose(k, 1, n/2)
			q, err := b.choose(k, 2, n)
			if err != nil || p.digest != q.digest || p.lanes != q.lanes {
				t.Errorf("%v of %d bytes: %s on one rank, %s on another (%v)", k, n, p.schedule.Name, q.schedule.Name, err)
			}
		}
	}
	if len(a.known) > 6*23 {
		t.Errorf("%d plans kept", len(a.known))
	}
}

func TestLayoutCoversEverythingOnce(t *testing.T) {
	for _, n := range []int{0, 1, 5, 16, 1003} {
		for chunks := 1; chunks <= 7; chunks++ {
			for lanes := 1; lanes <= 4; lanes++ {
				l := newLayout(tensor.New(tensor.Int32, n), chunks, lanes)
				var next int64
				for c := range chunks {
					for lane := range lanes {
						off, b := l.span(lane, c)
						if off != next || b < 0 || b%4 != 0 {
							t.Fatalf("%d in %d chunks, %d lanes: chunk %d lane %d is [%d, +%d), want it at %d", n, chunks, lanes, c, lane, off, b, next)
						}
						next += b
					}
				}
				if next != int64(4*n) {
					t.Errorf("%d in %d chunks, %d lanes: %d bytes", n, chunks, lanes, next)
				}
			}
		}
	}
}
