package ops

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

var (
	four   = ranks{n: 4}
	sparse = ranks{n: 4, list: []int{3, 10, 2, 70_000}}
)

var failures = []*failure{
	disagree(17, 2, callA, 3, callB),
	{at: 9, a: party{2, callA}, abort: &AbortedError{Rank: 2, Call: callA, Reason: "why"}},
	{at: 17, absent: &MissingError{Ranks: []int{3, 2}, Call: callA}},
}

func TestSignalsSurviveTheWire(t *testing.T) {
	for _, kind := range []byte{signalAsk, signalRoll, signalHere} {
		if s, err := decodeSignal(encodeCall(kind, callA), four); err != nil || s.kind != kind || s.call != callA {
			t.Errorf("%d: %v %v", kind, s, err)
		}
	}
	if s, err := decodeSignal(encodeRefusal(MaxTag, callA, callB), four); err != nil || s.tag != MaxTag || s.call != callA || s.ours != callB {
		t.Errorf("refusal: %v %v", s, err)
	}
	for _, members := range []ranks{four, sparse} {
		for _, f := range failures {
			s, err := decodeSignal(f.encode(members), members)
			if err == nil && f.absent != nil {
				slices.Sort(f.absent.Ranks)
				slices.Sort(s.fail.absent.Ranks)
			}
			if err != nil || !reflect.DeepEqual(s.fail, f) {
				t.Errorf("%v came back as %v, %v", f, s.fail, err)
			}
		}
	}
}

func TestMalformedSignals(t *testing.T) {
	none := &failure{absent: &MissingError{}}
	for name, c := range map[string]struct {
		p       []byte
		members ranks
	}{
		"empty":                 {nil, four},
		"short":                 {encodeCall(signalAsk, callA)[:callSize], four},
		"long":                  {append(encodeCall(signalHere, callA), 0), four},
		"unknown":               {encodeCall(99, callA), four},
		"too long":              {make([]byte, MaxSignal+1), four},
		"half a refusal":        {encodeCall(signalRefusal, callA), four},
		"outside the group":     {failures[0].encode(four), ranks{n: 2}},
		"abort from outside":    {failures[1].encode(four), ranks{n: 1}},
		"a rank between":        {failures[0].encode(four), ranks{n: 2, list: []int{2, 4}}},
		"one of the two":        {failures[0].encode(four)[:1+8+partySize], four},
		"nobody missing":        {none.encode(four), four},
		"another group's bits":  {failures[2].encode(four), ranks{n: 9}},
		"missing without a map": {encodeCall(signalMissing, callA), four},
	} {
		if s, err := decodeSignal(c.p, c.members); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// What does not fit is cut: a reason's end, the ranks of a group beyond belief.
func TestSignalsFit(t *testing.T) {
	long := &failure{abort: &AbortedError{Reason: strings.Repeat("x", 10_000)}}
	if n := len(long.encode(four)); n != MaxSignal {
		t.Errorf("a long reason makes a signal of %d bytes", n)
	}
	crowd := ranks{n: 10_000}
	all := &failure{absent: &MissingError{Ranks: []int{1, 5000, 9999}}}
	s, err := decodeSignal(all.encode(crowd), crowd)
	if err != nil || !slices.Equal(s.fail.absent.Ranks, []int{1}) {
		t.Errorf("%+v, %v", s.fail, err)
	}
}

func FuzzDecodeSignal(f *testing.F) {
	for _, kind := range []byte{signalAsk, signalRoll, signalHere} {
		f.Add(encodeCall(kind, callA))
	}
	f.Add(encodeRefusal(3, callA, callB))
	for _, fail := range failures {
		f.Add(fail.encode(four))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := decodeSignal(p, four)
		if err != nil || s.fail == nil {
			return
		}
		if s.fail.a.rank > 3 || s.fail.b.rank > 3 || s.fail.absent != nil && len(s.fail.absent.Ranks) > 4 {
			t.Error("a rank outside the group")
		}
		_ = s.fail.error(0, callA).Error()
		if got := s.fail.encode(four); len(got) > MaxSignal {
			t.Errorf("%d bytes", len(got))
		}
	})
}
