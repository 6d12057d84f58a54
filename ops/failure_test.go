package ops

import (
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

var (
	callA = Call{Seq: 17, Kind: KindAllReduce, DType: tensor.Float32, Op: tensor.Sum.Code(), Count: 1024, Root: noRoot, Digest: 0xfeedface}
	callB = Call{Seq: 17, Kind: KindBroadcast, DType: tensor.Int64, Count: 1 << 40, Root: 3}
)

func TestCallSurvivesItsTag(t *testing.T) {
	for _, c := range []Call{callA, callB, {}} {
		tag := c.tag(7, 1000, 3)
		if got := callOf(tag[:]); got != c {
			t.Errorf("%v came back as %v", c, got)
		}
		if tag == c.tag(8, 1000, 3) || tag == c.tag(7, 1001, 3) || tag == c.tag(7, 1000, 4) {
			t.Error("two messages of a call share a tag")
		}
	}
}

func TestCallReads(t *testing.T) {
	for want, c := range map[string]Call{
		"all_reduce #17 (float32 × 1024, sum)":          callA,
		"broadcast #17 (int64 × 1099511627776, root 3)": callB,
		"barrier #2":                         {Seq: 2, Kind: KindBarrier, Root: noRoot},
		"measure #3":                         {Seq: 3, Kind: KindMeasure, DType: tensor.Int64, Count: 8, Root: noRoot},
		"all_gather_object #3":               {Seq: 3, Kind: KindAllGatherObject, Root: noRoot},
		"scatter_object #3 (root 2)":         {Seq: 3, Kind: KindScatterObject, Root: 2},
		"all_to_all_v #3 (int8 × 4)":         {Seq: 3, Kind: KindAllToAllV, DType: tensor.Int8, Count: 4, Root: noRoot},
		"reduce #0 (uint8 × 5, max, root 1)": {Kind: KindReduce, DType: tensor.Uint8, Op: tensor.Max.Code(), Count: 5, Root: 1},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	other := callA
	other.Digest++
	e := &MismatchError{Rank: 1, Ours: callA, Theirs: other}
	if !strings.Contains(e.Error(), "another schedule") {
		t.Error(e)
	}
}

// Each rank is told of the one that differs from it.
func TestVerdicts(t *testing.T) {
	f := disagree(17, 2, callB, 0, callA)
	for self, want := range map[int]int{0: 2, 1: 2, 2: 0} {
		ours := callA
		if self == 2 {
			ours = callB
		}
		if e := f.error(self, ours).(*MismatchError); e.Rank != want || e.Ours != ours || e.Theirs == ours {
			t.Errorf("rank %d: %v", self, e)
		}
	}
}

// Where ranks do not know each other's counts, two that differ in them may agree;
// and two that are at odds about a part are told its counts.
func TestVerdictsAboutParts(t *testing.T) {
	part := func(n uint64) Call { return Call{Seq: 17, Kind: KindGatherList, DType: tensor.Float32, Count: n} }
	if a, b := part(5), part(7); !a.agrees(b) || a.agrees(callA) {
		t.Error("counts of their own set calls apart")
	}
	for _, c := range []struct {
		f          *failure
		self, told int
		ours       Call // as issued
		says       Call // as told
	}{
		{disagree(17, 2, callB, 0, part(5)), 1, 2, part(7), part(7)},    // 0 differs in its count alone
		{disagree(17, 0, part(5), 2, callB), 1, 2, part(7), part(7)},    //
		{disagree(17, 2, part(6), 0, part(5)), 2, 0, part(6), part(6)},  // the sender
		{disagree(17, 2, part(6), 0, part(5)), 0, 2, part(30), part(5)}, // the receiver, who issued all
		{disagree(17, 2, part(6), 0, part(5)), 1, 2, part(5), part(5)},  // a third, who did as 0 expects
	} {
		e := c.f.error(c.self, c.ours).(*MismatchError)
		if e.Rank != c.told || e.Ours != c.says || e.Theirs == e.Ours {
			t.Errorf("rank %d: %v", c.self, e)
		}
	}
}
