package trainer

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
)

// Every part reaches every rank that lacks it, once, from one that has it by then.
func TestRoute(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n, parts := 1+rng.IntN(6), 1+rng.IntN(9)
		all := make([][]bool, n)
		for r := range all {
			all[r] = make([]bool, parts)
			for i := range all[r] {
				all[r][i] = rng.IntN(3) == 0
			}
		}
		for i := range parts {
			if _, ok := holder(i, all); !ok {
				all[rng.IntN(n)][i] = true
			}
			gets := make(map[int]int)
			for r := range n {
				l, ok := route(i, all, r)
				if !ok {
					continue
				}
				if l.prev >= 0 {
					gets[r]++
				}
				if (l.prev < 0) != all[r][i] {
					t.Fatalf("rank %d gets part %d of %v from %d", r, i, all, l.prev)
				}
				if l.next >= 0 {
					if m, ok := route(i, all, l.next); !ok || m.prev != r {
						t.Fatalf("part %d of %v: %d sends to %d, which expects it from %d", i, all, r, l.next, m.prev)
					}
				}
			}
			for r := range n {
				if (gets[r] == 1) == all[r][i] {
					t.Fatalf("part %d of %v: rank %d gets it %d times", i, all, r, gets[r])
				}
			}
		}
	}
}

// Any mix of parts on any ranks ends as the whole on all.
func TestExchange(t *testing.T) {
	const parts, n = 20, 4
	s := bulky(4, Progress{Step: 1}, parts)
	l, err := s.label()
	if err != nil {
		t.Fatal(err)
	}
	b := newBody(s.all())
	rng := rand.New(rand.NewPCG(7, 7))
	cargos := make([]*cargo, n)
	for r := range cargos {
		cargos[r] = newCargo(l, b.size())
	}
	for i := range parts {
		for _, r := range rng.Perm(n)[:1+rng.IntN(2)] {
			lo, _ := bounds(b.size(), i)
			if err := errors.Join(b.read(cargos[r].part(i), lo), cargos[r].accept(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	noErrors(t, each(memnet.New(n), func(rank int, w *memnet.World) error {
		c := cargos[rank]
		return (&haul{label: l, have: c.have, size: b.size(), cargo: c}).exchange(context.Background(), ops.NewGroup(w, ops.Config{}))
	}))
	for r, c := range cargos {
		if count(c.have, true) != parts {
			t.Errorf("rank %d has %d parts", r, count(c.have, true))
		}
	}
	lost := []bool{true, false}
	for r, err := range each(memnet.New(2), func(_ int, w *memnet.World) error {
		return (&haul{have: lost}).exchange(context.Background(), ops.NewGroup(w, ops.Config{}))
	}) {
		if e, ok := errors.AsType[*LostPartsError](err); !ok || !reflect.DeepEqual(e.Parts, []int{1}) || e.Of != 2 {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func count(bs []bool, b bool) int {
	n := 0
	for _, x := range bs {
		if x == b {
			n++
		}
	}
	return n
}
