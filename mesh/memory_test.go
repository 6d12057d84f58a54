package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

func ids(s string) (all []peer.ID) {
	for _, r := range s {
		all = append(all, peer.ID(string(r)))
	}
	return all
}

func world(epoch uint64, members string) roster { return newRoster("m", epoch, digest{}, ids(members)) }

// A mind is a memory in short: the last world, and whether it votes in it; the
// worlds in doubt; the rosters passed over.
func mind(last *roster, voter bool, doubt, passed []roster) *memory {
	m := &memory{Voter: voter, Doubt: doubt}
	if last != nil {
		m.Last = &past{roster: *last}
	}
	for _, r := range passed {
		m.Passed = append(m.Passed, passing{r.Epoch, r.Digest})
	}
	return m
}

// reborn is a mind whose process has started again.
func reborn(m *memory) *memory {
	m.Promised = max(m.Promised, m.epoch())
	for _, r := range m.Doubt {
		m.Promised = max(m.Promised, r.Epoch)
	}
	m.revive()
	return m
}

func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		of, here string
		ok       bool
	}{
		{"a", "a", true}, {"a", "b", false},
		{"ab", "a", true}, {"ab", "b", false}, {"ab", "ab", true},
		{"abc", "bc", true}, {"abc", "a", false},
		{"abcd", "ab", true}, {"abcd", "bc", false}, {"abcd", "bcd", true}, {"abcd", "aef", false},
		{"abcde", "ab", false}, {"abcde", "cde", true}, {"abcde", "", false},
	} {
		err := quorum(world(1, c.of), func(id peer.ID) bool { return slices.Contains(ids(c.here), id) })
		if (err == nil) != c.ok {
			t.Errorf("%s of %s: %v", c.here, c.of, err)
		}
	}
	err := quorum(world(7, "abcd"), func(id peer.ID) bool { return id == "b" || id == "c" })
	want := "2 of the 4 members of world 7 are here and remember it; more than half must, or half with its rank 0, " + short("a")
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// No two sets without a common member can both go on from a world.
func TestQuorumsMeet(t *testing.T) {
	for n := 1; n <= 8; n++ {
		w := world(1, "abcdefgh"[:n])
		pass := func(set int) bool {
			return quorum(w, func(id peer.ID) bool { return set>>w.rank(id)&1 == 1 }) == nil
		}
		for a := range 1 << n {
			if rest := 1<<n - 1 - a; pass(a) && pass(rest) {
				t.Errorf("of %d, %b and %b both pass", n, a, rest)
			}
		}
	}
}

func TestAllows(t *testing.T) {
	one, two, three := world(1, "abcde"), world(2, "abc"), world(3, "abcd")
	for name, c := range map[string]struct {
		minds map[peer.ID]*memory
		ok    bool
	}{
		"newcomers": {map[peer.ID]*memory{"x": {}, "y": {}}, true},
		"majority":  {map[peer.ID]*memory{"a": mind(&one, true, nil, nil), "b": mind(&one, true, nil, nil), "c": mind(&one, true, nil, nil)}, true},
		"minority":  {map[peer.ID]*memory{"a": mind(&one, true, nil, nil), "b": mind(&one, true, nil, nil), "x": {}, "y": {}}, false},
		"amnesia":   {map[peer.ID]*memory{"a": mind(&one, true, nil, nil), "b": mind(&one, true, nil, nil), "c": {}}, false},
		"told of it, but forgot": {map[peer.ID]*memory{"a": mind(&one, true, nil, nil), "b": mind(&one, true, nil, nil),
			"c": mind(&one, false, nil, nil)}, false},
		"laggards do not hold back": {map[peer.ID]*memory{"a": mind(&two, true, nil, nil), "b": mind(&two, true, nil, nil),
			"e": mind(&one, true, nil, nil)}, true},
		"nor do they vote": {map[peer.ID]*memory{"a": mind(&two, true, nil, nil), "c": mind(&one, true, nil, nil),
			"d": mind(&one, true, nil, nil), "e": mind(&one, true, nil, nil)}, false},
		"in doubt, both have a quorum": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil), "b": mind(&one, true, []roster{two}, nil),
			"d": mind(&one, true, nil, nil)}, true},
		"in doubt, no quorum of the later": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil),
			"d": mind(&one, true, nil, nil), "e": mind(&one, true, nil, nil)}, false},
		"in doubt, no quorum of the earlier": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil), "b": mind(&one, true, []roster{two}, nil)}, false},
		"in doubt until one that passed it over is there": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil),
			"c": mind(&one, true, nil, []roster{two}), "d": mind(&one, true, nil, nil)}, true},
		"one that forgot cannot tell": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil),
			"c": {}, "d": mind(&one, true, nil, nil), "e": mind(&one, true, nil, nil)}, false},
		"two in doubt": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two, three}, nil), "b": mind(&one, true, []roster{three}, nil),
			"d": mind(&one, true, []roster{three}, nil), "e": mind(&one, true, nil, nil)}, false},
		"doubts that are settled": {map[peer.ID]*memory{"a": mind(&one, true, []roster{two}, nil), "b": mind(&three, true, nil, nil),
			"d": mind(&three, true, nil, nil), "c": mind(&three, true, nil, nil)}, true},
		"a majority without a witness": {map[peer.ID]*memory{"a": reborn(mind(&two, true, nil, nil)), "b": reborn(mind(&two, true, nil, nil))}, false},
		"one witness":                  {map[peer.ID]*memory{"a": reborn(mind(&two, true, nil, nil)), "b": mind(&two, true, nil, nil)}, true},
		"nobody left to wait for": {map[peer.ID]*memory{"a": reborn(mind(&two, true, nil, nil)), "b": reborn(mind(&two, true, nil, nil)),
			"c": {}}, true},
		"a witness of the earlier only": {map[peer.ID]*memory{"a": reborn(mind(&one, true, []roster{two}, nil)), "b": reborn(mind(&one, true, []roster{two}, nil)),
			"d": mind(&one, true, nil, nil)}, false},
	} {
		if err := allows(c.minds); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemory(t *testing.T) {
	m := &memory{}
	one, two, three := world(1, "abc"), world(2, "abc"), world(3, "ab")
	steps := []struct {
		what string
		err  error
		want string // what is part of the error
	}{
		{"promise", m.promise(two), ""},
		{"promise an earlier one", m.promise(one), "is past"},
		{"promise it again", m.promise(two), "is past"},
		{"stand in what was not promised", m.stand(three, true), "given up"},
		{"stand", m.stand(two, true), ""},
		{"stand twice", m.stand(two, true), "given up"},
		{"promise the next", m.promise(three), ""},
	}
	for _, s := range steps {
		if s.err == nil != (s.want == "") || s.err != nil && !strings.Contains(s.err.Error(), s.want) {
			t.Errorf("%s: %v, want %q", s.what, s.err, s.want)
		}
	}
	if !m.votes(two) || m.votes(three) || !m.passedOver(three.Digest) || m.blank() || m.epoch() != 0 {
		t.Errorf("%+v", m)
	}
	if !m.settle(&past{roster: two}) || m.settle(&past{roster: two}) || !m.Voter || len(m.Doubt) != 0 || len(m.Passed) != 1 {
		t.Errorf("settled: %+v", m)
	}
	if !m.settle(&past{roster: world(9, "bc")}) || m.Voter || m.Promised != 9 || len(m.Passed) != 0 {
		t.Errorf("a world of others: %+v", m)
	}
	if m.related(&past{roster: world(10, "xy")}, "b") || !m.related(&past{roster: world(10, "cx")}, "b") || m.related(&past{roster: world(10, "bx")}, "b") {
		t.Error("who is related?")
	}
	for i := range uint64(maxPassed + 9) {
		if err := m.promise(world(10+i, "ab")); err != nil || len(m.Passed) > maxPassed {
			t.Fatal(err, len(m.Passed))
		}
	}
	for i := range uint64(maxDoubt) {
		r := world(1000+i, "ab")
		if err := fmt.Sprint(m.promise(r), m.stand(r, true)); err != "<nil> <nil>" {
			t.Fatal(err)
		}
	}
	if err := m.promise(world(5000, "ab")); err == nil {
		t.Error("doubts without bound")
	}
}

// A peer that has started again is a witness of the worlds that it stands in from then on,
// whether they stand on others or not, and of none before.
func TestBorn(t *testing.T) {
	one, two := world(1, "abc"), world(8, "abcd")
	a, b := mind(&one, true, nil, nil), mind(&one, true, nil, nil)
	for _, m := range []*memory{a, b} {
		m.Promised = 1
		m.revive()
		if err := errors.Join(m.promise(two), m.stand(two, true)); err != nil {
			t.Fatal(err)
		}
	}
	minds := map[peer.ID]*memory{"a": a, "b": b}
	if has, err := witnessed(two, minds); err != nil || !has {
		t.Error(err)
	}
	if _, err := witnessed(one, minds); err == nil {
		t.Error("by standing in a world they have remembered the one before")
	}
	if err := allows(minds); !errors.As(err, new(*witnessError)) {
		t.Errorf("they go on without c, which has lived through the world before: %v", err)
	}
	minds["c"], minds["d"] = mind(&one, true, nil, []roster{two}), &memory{}
	if err := allows(minds); err != nil {
		t.Error(err)
	}
}

// A peer that is let into a world is no witness of it until it has been given what was
// done before, or is told that it had it; then it is, also of those before.
func TestBare(t *testing.T) {
	one, two, three := world(1, "bd"), world(2, "bcd"), world(3, "bce")
	enter := func(m *memory, r roster, holds bool) *memory {
		if err := errors.Join(m.promise(r), m.stand(r, holds)); err != nil {
			t.Fatal(err)
		}
		return m
	}
	lived, guest := enter(mind(&one, true, nil, nil), two, true), enter(&memory{}, two, false)
	again := enter(reborn(mind(&one, true, nil, nil)), two, false)
	minds := map[peer.ID]*memory{"b": again, "c": guest}
	if err := allows(minds); !errors.As(err, new(*witnessError)) {
		t.Errorf("they go on without d, which has what was done: %v", err)
	}
	if minds["d"] = lived; allows(minds) != nil || !lived.holds(bases(minds)) || guest.holds(bases(minds)) {
		t.Errorf("with it: %v", allows(minds))
	}
	delete(minds, "d")
	guest.had(three)
	if again.carried(three); allows(minds) == nil {
		t.Error("by a world that they have not been in")
	}
	if again.carried(two); allows(minds) != nil || !again.holds([]roster{one, two}) || again.Born != 0 {
		t.Errorf("one has been given it: %v", allows(minds))
	}
	if guest.had(two); !guest.witness(two) || guest.witness(one) {
		t.Error("one has had it all along, but was not in the world before")
	}
	enter(guest, three, false)
	if guest.settle(&past{roster: three}); !slices.Equal(guest.Bare, []uint64{3}) || guest.witness(three) {
		t.Errorf("a world that stood everywhere: %+v", guest)
	}
	if guest.settle(&past{roster: world(4, "bd")}); len(guest.Bare) > 0 {
		t.Errorf("bare in %d", guest.Bare)
	}
	enter(guest, world(5, "ac"), false)
	if guest.revive(); guest.Born != 5 || len(guest.Bare) > 0 || guest.witness(world(5, "ac")) {
		t.Errorf("another life: %+v", guest)
	}
}

// A peer that was in none of the last worlds, nor was anybody that it knows from its
// own, follows the line of another's memory.
func TestLine(t *testing.T) {
	past := func(r roster) *past { return &past{roster: r} }
	m, away := &memory{}, mind(new(world(1, "ab")), true, nil, nil)
	for _, r := range []roster{world(1, "ab"), world(2, "bc"), world(3, "c")} {
		m.settle(past(r))
	}
	if got := len(m.Line); got != 2 || m.Line[1].Epoch != 2 {
		t.Fatalf("a line of %d: %+v", got, m.Line)
	}
	if away.related(m.Last, "a") || !away.related(m.Line[1], "a") {
		t.Error("the line does not lead from a world to the next")
	}
	if away.settle(m.Line[1]); !away.related(m.Last, "a") {
		t.Error("the line does not lead to the last world")
	}
	if m.settle(past(world(4, "abc"))); len(m.Line) != 0 {
		t.Errorf("worlds of which all are here again: %+v", m.Line)
	}
	for i := range uint64(2 * maxLine) {
		m.settle(past(world(5+i, string([]rune{'d' + rune(i), 'e' + rune(i)}))))
	}
	if len(m.Line) != maxLine {
		t.Errorf("a line of %d", len(m.Line))
	}
	big := make([]peer.ID, maxLineMembers)
	for i := range big {
		big[i] = peer.ID(fmt.Sprintf("%04d", i))
	}
	m.settle(past(newRoster("m", 100, digest{}, big)))
	m.settle(past(world(101, "a")))
	if len(m.Line) != 1 || m.Line[0].Epoch != 100 {
		t.Errorf("a line of %d with a world of %d", len(m.Line), len(big))
	}
}
