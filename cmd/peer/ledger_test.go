package main

import (
	"slices"
	"testing"

	"peermesh/trainer"
)

// account learns from samples in steps, as all ranks together do.
func account(steps ...[]int) *ledger {
	l := newLedger()
	for _, s := range steps {
		l.note(s, 0.5)
		l.commit()
	}
	return l
}

// TestLedger: each sample once, in any order and any steps, and nothing else will do.
func TestLedger(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps [][]int
		right bool
	}{
		{"in order", [][]int{{0, 1}, {2, 3}, {4}}, true},
		{"in any order", [][]int{{4, 2}, {}, {3, 0, 1}}, true},
		{"one missing", [][]int{{0, 1}, {2, 3}}, false},
		{"one twice", [][]int{{0, 1}, {2, 3}, {4, 4}}, false},
		{"one for another", [][]int{{0, 1}, {2, 3}, {3}}, false},
		{"a step twice", [][]int{{0, 1}, {0, 1}, {2, 3}, {4}}, false},
		{"nothing", nil, false},
	} {
		if err := account(test.steps...).audit(5); (err == nil) != test.right {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestLedgerForgets: a step that failed leaves no trace, and an epoch begins anew.
func TestLedgerForgets(t *testing.T) {
	l := account([]int{0, 1, 2})
	l.note([]int{7, 8}, 3) // and no commit
	if err := l.audit(3); err != nil || l.loss() != 0.5 || l.lastLoss() != 0.5 {
		t.Errorf("%v, loss %v, at last %v", err, l.loss(), l.lastLoss())
	}
	l.clear()
	if l.samples() != 0 || l.lastLoss() != 0.5 {
		t.Errorf("a new epoch has %d samples; the last loss is %v", l.samples(), l.lastLoss())
	}
}

// TestLedgerIsState: what is loaded into the tensors is the account.
func TestLedgerIsState(t *testing.T) {
	from, to := account([]int{0, 1}, []int{2}), newLedger()
	if err := trainer.LoadState(to.state(), from.state()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(to.epoch, from.epoch) || !slices.Equal(to.last, from.last) || to.audit(3) != nil {
		t.Errorf("%v became %v", from, to)
	}
}

// TestMarks: a million samples, a million marks, or nearly.
func TestMarks(t *testing.T) {
	seen := make(map[float64]bool)
	const n = 1 << 20
	for s := range n {
		m := mark(s)
		if m < 0 || m >= 1<<32 || m != float64(uint32(m)) {
			t.Fatalf("mark(%d) = %v", s, m)
		}
		seen[m] = true
	}
	if len(seen) < n-n/1000 {
		t.Errorf("only %d marks of %d samples", len(seen), n)
	}
}
