package mesh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"peermesh/node"
)

// sealed is a puppet's announcement with changes, signed with a key.
func sealed(t *testing.T, p *puppet, key crypto.PrivKey, change func(a *announcement)) []byte {
	t.Helper()
	a := &announcement{Version: p.self.Version, Mesh: p.self.Mesh, World: p.self.World, Since: p.self.Since, Expires: p.self.Expires, Addrs: p.self.Addrs}
	change(a)
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	return a.raw
}

// A peer that lies about itself is refused: with a forged announcement, with
// another's, with one from the past. What lies it brings of others are passed over.
func TestForgedAnnouncements(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	p := newPuppet(t, n.ID(), true)
	own := p.node.Host().Peerstore().PrivKey(p.node.ID())
	other, key := signed(t, defaultName, 2)
	past := func(a *announcement) { a.Expires = time.Now().Add(-time.Second) }
	forged := bytes.Clone(p.self.raw)
	forged[len(forged)-1] ^= 1

	for name, raw := range map[string][]byte{
		"forged":           forged,
		"another's":        other.raw,
		"signed by others": sealed(t, p, key, func(*announcement) {}),
	} {
		s := speak(t, p.node, n, meetProtocol, presence{Asks: true}.append(appendBlocks(nil, [][]byte{raw})))
		if _, err := io.ReadAll(s); !errors.Is(err, node.ErrViolation) {
			t.Errorf("%s: %v", name, err)
		}
		s.Reset(node.ErrClosed)
	}
	fresh := p.self.raw
	p.self.raw = sealed(t, p, own, past)
	if a := p.meet(n); a.Code != declineExpired || a.final() {
		t.Errorf("expired: %+v", a)
	}
	m.mu.Lock()
	if m.view[p.node.ID()] != nil || m.view[other.ID] != nil {
		t.Error("it is known all the same")
	}
	m.mu.Unlock()

	// Of others: forged, expired, and an older one again after a newer.
	newer := sealed(t, p, key, func(a *announcement) { a.Since, a.Expires = other.Since, other.Expires.Add(time.Second) })
	bad := bytes.Clone(other.raw)
	bad[len(bad)/2] ^= 1
	third, thirdKey := signed(t, defaultName, 2)
	late := sealed(t, p, thirdKey, past)
	blocks := [][]byte{fresh, newer, bad, other.raw, late}
	s := speak(t, p.node, n, meetProtocol, presence{Asks: true}.append(appendBlocks(nil, blocks)))
	if a, err := readAnswer(s); err != nil || a.Code != answerYes {
		t.Fatalf("%+v, %v", a, err)
	}
	s.Reset(node.ErrClosed)
	await(t, m, func() bool { return m.view[p.node.ID()] != nil && m.view[other.ID] != nil })
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.view[other.ID].raw, newer) {
		t.Error("an older announcement has replaced a newer")
	}
	if m.view[third.ID] != nil {
		t.Error("an expired announcement was taken in")
	}
}

// The gossip takes in, and spreads, none of those either.
func TestForgedGossip(t *testing.T) {
	n := startNode(t, loopback)
	m := join(t, n, Config{World: 2})
	good, key := signed(t, defaultName, 2)
	elsewhere, _ := signed(t, "elsewhere", 2)
	forged := bytes.Clone(good.raw)
	forged[len(forged)-1] ^= 1
	old := &announcement{Version: protocolVersion, Mesh: defaultName, World: 2, Since: good.Since, Expires: time.Now().Add(-time.Second)}
	if err := old.seal(key); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"forged": forged, "expired": old.raw, "of another mesh": elsewhere.raw, "nothing": nil, "huge": make([]byte, maxAnnouncement+1)} {
		if m.overheard(raw) {
			t.Errorf("%s: spreads", name)
		}
	}
	if !m.overheard(good.raw) {
		t.Error("a good one does not")
	}
}

// A peer whose partner's clock is wrong reads so.
func TestExpiredPartner(t *testing.T) {
	n := startNode(t, loopback)
	p := newPuppet(t, n.ID(), true)
	raw := sealed(t, p, p.node.Host().Peerstore().PrivKey(p.node.ID()), func(a *announcement) { a.Expires = time.Now().Add(-time.Second) })
	stop, err := p.node.Handle(t.Context(), meetProtocol, func(s *node.Stream) {
		defer s.Close()
		p.say(s, presence{Asks: true}.append(appendBlocks((&answer{}).append(nil), [][]byte{raw}))...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	m := join(t, n, Config{World: 2, Bootstrap: []string{p.node.Addrs()[0].String()}})
	awaitReason(t, m, errExpired.Error())
}

// A peer renews its announcement also while it is in a world: those who come hours
// later must be able to believe it.
func TestAnnouncementIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := node.Start(t.Context(), node.Config{Transports: []string{node.Memory}})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		m, err := Join(t.Context(), n, Config{World: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := m.World(context.Background()); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(lifetime / 4)
			m.mu.Lock()
			if left := time.Until(m.self.Expires); left <= lifetime/4 {
				t.Errorf("%s left", left)
			}
			m.mu.Unlock()
		}
	})
}
