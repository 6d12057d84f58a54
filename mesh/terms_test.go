package mesh

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		terms []string
		ok    bool
	}{
		{nil, true}, {[]string{"--batch-size 32", "60000 Bilder, größer"}, true},
		{[]string{""}, false}, {[]string{"two\nlines"}, false}, {[]string{"\xff"}, false},
		{[]string{strings.Repeat("x", MaxTerms-1)}, true}, {[]string{strings.Repeat("x", MaxTerms)}, false},
	} {
		if validTerms(c.terms) != c.ok {
			t.Errorf("%q", c.terms)
		}
		if back := splitTerms(joinTerms(c.terms)); c.ok && !slices.Equal(back, c.terms) {
			t.Errorf("%q became %q", c.terms, back)
		}
	}
	if got := unlike([]string{"a 1", "b 2"}, []string{"a 1", "b 3", "c"}); got != "its terms are b 3, c, this peer's b 2" {
		t.Error(got)
	}
	if got := unlike([]string{"a 1"}, []string{"a 1", "c"}); got != "its terms are c, this peer's nothing else" {
		t.Error(got)
	}
	if unlike([]string{"a"}, []string{"a"}) != "" {
		t.Error("the same terms differ")
	}
	if _, _, err := (Config{World: 1, Terms: []string{"\n"}}).plan(""); err == nil {
		t.Error("terms of control characters")
	}
}

// One of other terms is told what they are, and has no part in anything: neither the
// peer that it comes to nor a world that has room for one more notices.
func TestOtherTerms(t *testing.T) {
	a := startNode(t, loopback)
	boot := []string{a.Addrs()[0].String()}
	c := Config{World: 3, Min: 2, Quorum: Any, Terms: []string{"--lr 0.5", "--seed 1"}}
	first := join(t, a, c)
	c.Bootstrap = boot
	second := join(t, startNode(t, loopback), c)
	other := c
	other.Terms = []string{"--lr 0.1", "--seed 1"}
	stranger := join(t, startNode(t, loopback), other)
	var refused *RefusedError
	if _, err := stranger.World(t.Context()); !errors.As(err, &refused) || refused.Peer != a.ID() || refused.Reason != "its terms are --lr 0.5, this peer's --lr 0.1" {
		t.Errorf("got %v", err)
	}
	third := join(t, startNode(t, loopback), c)
	each(t, 3, func(i int) error {
		w, err := []*Mesh{first, second, third}[i].World(t.Context())
		if err == nil && w.Size() != 3 {
			t.Errorf("a world of %d", w.Size())
		}
		return err
	})
}

// A peer that has been in a world is not ended by what another says.
func TestRefusalOfAMember(t *testing.T) {
	p := form(t, 2, Config{})
	m := p.meshes[0]
	m.refused(&RefusedError{Peer: p.nodes[1].ID(), Reason: "no"})
	p.worlds[0].End(errors.New("over"))
	<-p.worlds[0].Context().Done()
	m.refused(&RefusedError{Peer: p.nodes[1].ID(), Reason: "no"})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fatal != nil {
		t.Error(m.fatal)
	}
}
