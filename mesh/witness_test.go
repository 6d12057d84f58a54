package mesh

import (
	"errors"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

// through has a peer be in a world that stands on every rank.
func through(t *testing.T, m *memory, r roster) *memory {
	t.Helper()
	if err := errors.Join(m.promise(r), m.stand(r, true)); err != nil {
		t.Fatal(err)
	}
	m.settle(&past{roster: r})
	return m
}

func epochs(m *memory) (all []uint64) {
	for _, f := range m.Before {
		all = append(all, f.Epoch)
	}
	return all
}

// When all members of a world have lost what was done, those who were cut off in the one
// before are asked after, unless the world had got on since.
func TestBefore(t *testing.T) {
	one, two := world(1, "abc"), world(2, "ac")
	a, b, c := through(t, &memory{}, one), through(t, &memory{}, one), through(t, &memory{}, one)
	through(t, a, two)
	through(t, c, two)
	minds := map[peer.ID]*memory{"a": a, "c": c}
	if err := allows(minds); err != nil {
		t.Errorf("both live: %v", err)
	}
	late := a.clone()
	late.advance(two)
	a.revive()
	if err := allows(minds); err != nil {
		t.Errorf("one lives: %v", err)
	}
	c.revive()
	var w *witnessError
	if err := allows(minds); !errors.As(err, &w) || w.Of.Epoch != 1 {
		t.Errorf("b may have as much, and they go on without: %v", err)
	}
	if b.follow(a); b.Voter || !b.witness(one) || b.witness(two) {
		t.Errorf("b has heard of what it missed: %+v", b)
	}
	minds["b"] = b
	if err := allows(minds); err != nil {
		t.Errorf("b has it: %v", err)
	}
	if b.revive(); allows(minds) != nil || b.witness(one) {
		t.Errorf("nobody has it any more: %v", allows(minds))
	}
	delete(minds, "b")
	if late.revive(); late.Ahead != 2 || len(late.Before) > 0 {
		t.Errorf("a step later: %+v", late)
	}
	if minds["a"] = late; allows(minds) != nil {
		t.Errorf("what b has is out of date, as one of them knows, and still they wait: %v", allows(minds))
	}
}

// A world in doubt, of which nobody here ever hears that it stood everywhere, comes before
// the next all the same.
func TestBeforeInDoubt(t *testing.T) {
	one, two, three := world(1, "abc"), world(2, "abcd"), world(3, "abc")
	minds := make(map[peer.ID]*memory)
	for _, id := range ids("abc") {
		m := through(t, &memory{}, one)
		if err := errors.Join(m.promise(two), m.stand(two, true)); err != nil {
			t.Fatal(err)
		}
		minds[id] = through(t, m, three)
		m.revive()
	}
	var w *witnessError
	if err := allows(minds); !errors.As(err, &w) || w.Of.Epoch != 2 {
		t.Errorf("d may have what was done in world 2: %v", err)
	}
	minds["d"] = &memory{}
	if err := allows(minds); err != nil {
		t.Errorf("it has forgotten: %v", err)
	}
}

// What is kept of the worlds before is what somebody may have who is not in the last, and
// bounded.
func TestSucceed(t *testing.T) {
	m := &memory{}
	for i, r := range []roster{world(1, "abc"), world(2, "ab"), world(3, "abd"), world(4, "ab")} {
		if through(t, m, r); len(m.Before) != i {
			t.Errorf("before world %d: %d", r.Epoch, epochs(m))
		}
	}
	if m.advance(world(9, "ab")) || !m.advance(world(4, "ab")) || m.advance(world(4, "ab")) || len(m.Before) > 0 {
		t.Errorf("in a world that has got on: %+v", m)
	}
	if through(t, m, world(5, "abx")); len(m.Before) != 0 {
		t.Errorf("a world of which all are here: %d", epochs(m))
	}
	for i := range uint64(2 * maxLine) {
		through(t, m, world(6+i, string([]rune{'c' + rune(i), 'd' + rune(i)})))
	}
	if got := epochs(m); len(got) != maxLine || !slices.IsSorted(got) {
		t.Errorf("before the last: %d", got)
	}
	big := make([]peer.ID, maxLineMembers)
	for i := range big {
		big[i] = peer.ID([]byte{'~', byte(i >> 8), byte(i)})
	}
	through(t, m, newRoster("m", 100, digest{}, big))
	if through(t, m, world(101, "a")); !slices.Equal(epochs(m), []uint64{100}) {
		t.Errorf("with a world of %d: %d", len(big), epochs(m))
	}
}
