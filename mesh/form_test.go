package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// freePort is an address that nobody listens on, for a while.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
}

// keyFile is an identity whose peer ID is known before its node starts.
func keyFile(t *testing.T) (path string, id peer.ID) {
	t.Helper()
	path = t.TempDir() + "/peer.key"
	n, err := node.Start(t.Context(), node.Config{Identity: path, Listen: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	id = n.ID()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return path, id
}

// The bootstrap peer comes at each place in the order of starts, the last too.
func TestAnyOrder(t *testing.T) {
	const n = 4
	for place := range n {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			path, id := keyFile(t)
			listen := freePort(t)
			addr := fmt.Sprintf("%s/p2p/%s", listen, id)
			var meshes []*Mesh
			for i := range n {
				if i != place {
					meshes = append(meshes, join(t, startNode(t, loopback), Config{World: n, Bootstrap: []string{addr}}))
					continue
				}
				if place > 0 { // the others have found nobody yet
					awaitReason(t, meshes[0], fmt.Sprintf("1 of 4 here: %s (this peer); waiting for 3 more; "+
						"bootstrap %s cannot be reached: connection refused", short(meshes[0].self.ID), listen))
				}
				boot, err := node.Start(t.Context(), node.Config{Identity: path, Listen: []string{listen}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { boot.Close() })
				meshes = append(meshes, join(t, boot, Config{World: n, Bootstrap: []string{addr}})) // its own address is ignored
			}
			begin := time.Now()
			worlds := worldsOf(t, meshes)
			t.Log("formed in", time.Since(begin))
			for _, w := range worlds[1:] {
				if w.roster.Digest != worlds[0].roster.Digest {
					t.Error("two tables of ranks")
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	p := form(t, 2, Config{Name: "ours"})
	boot := []string{p.nodes[0].Addrs()[0].String()}
	for name, c := range map[string]struct {
		Config
		reason string
	}{
		"name":  {Config{Name: "theirs", World: 2}, `it is in mesh "ours", this peer in mesh "theirs"`},
		"size":  {Config{Name: "ours", World: 3}, "it wants a world of 2, this peer one of 3"},
		"third": {Config{Name: "ours", World: 2}, "the world of 2 is complete: " + names([]peer.ID{p.nodes[0].ID(), p.nodes[1].ID()})},
	} {
		t.Run(name, func(t *testing.T) {
			c.Bootstrap = boot
			_, err := join(t, startNode(t, loopback), c.Config).World(t.Context())
			var no *RefusedError
			if !errors.As(err, &no) || no.Reason != c.reason || no.Peer != p.nodes[0].ID() {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, w := range p.worlds {
		if err := context.Cause(w.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Five want a world of four: four get it, and the fifth hears why not.
func TestOneTooMany(t *testing.T) {
	const n = 4
	first := startNode(t, loopback)
	meshes := []*Mesh{join(t, first, Config{World: n})}
	for range n {
		meshes = append(meshes, join(t, startNode(t, loopback), Config{World: n, Bootstrap: []string{first.Addrs()[0].String()}}))
	}
	errs := make([]error, len(meshes))
	each(t, len(meshes), func(i int) error {
		_, errs[i] = meshes[i].World(t.Context())
		return nil
	})
	refused := 0
	for _, err := range errs {
		var no *RefusedError
		if errors.As(err, &no) {
			refused++
			if !strings.Contains(no.Reason, "the world of 4 is complete") {
				t.Error(err)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 1 {
		t.Errorf("%d refused: %v", refused, errs)
	}
}

func TestStolenIdentity(t *testing.T) {
	path, _ := keyFile(t)
	a := startNode(t, loopback)
	b, err := node.Start(t.Context(), node.Config{Identity: path, Listen: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	boot := []string{a.Addrs()[0].String()}
	worldsOf(t, []*Mesh{join(t, a, Config{World: 2}), join(t, b, Config{World: 2, Bootstrap: boot})})

	c, err := node.Start(t.Context(), node.Config{Identity: path, Listen: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = join(t, c, Config{World: 2, Bootstrap: boot}).World(t.Context())
	var no *RefusedError
	if !errors.As(err, &no) || !strings.Contains(no.Reason, "cannot share an identity") {
		t.Error(err)
	}
}

func TestJoinRefuses(t *testing.T) {
	n := startNode(t, loopback)
	for want, c := range map[string]Config{
		"a world of 0":    {},
		"a world of 1025": {World: MaxWorld + 1},
		"a world of -1":   {World: -1},
		"name":            {World: 1, Name: strings.Repeat("x", MaxName+1)},
		"printable":       {World: 1, Name: "a\nb"},
		"silence":         {World: 1, Silence: time.Millisecond},
		"cannot wait":     {World: 1, Wait: -1},
		"not a multiaddr": {World: 2, Bootstrap: []string{"localhost"}},
		"lacks the peer":  {World: 2, Bootstrap: []string{"/ip4/127.0.0.1/tcp/1"}},
	} {
		if _, err := Join(t.Context(), n, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	join(t, n, Config{World: 2})
	if _, err := Join(t.Context(), n, Config{World: 2}); err == nil || !strings.Contains(err.Error(), "handled already") {
		t.Errorf("second mesh on a node: %v", err)
	}
}

func TestWaitIsBounded(t *testing.T) {
	m := join(t, startNode(t, loopback), Config{World: 3, Wait: 50 * time.Millisecond})
	_, err := m.World(t.Context())
	if !errors.Is(err, ErrNoWorld) || !strings.Contains(err.Error(), "1 of 3 here") {
		t.Error(err)
	}
}

// A peer that listens nowhere the others can reach is named, with the reason.
func TestUnreachableIsNamed(t *testing.T) {
	a := startNode(t, loopback)
	m := join(t, a, Config{World: 3})
	ghost := newAnnouncement(t, "default", 3, freePort(t))
	m.introduced(m.self, [][]byte{ghost.raw})
	awaitReason(t, m, short(ghost.ID)+" has announced but cannot be reached: connection refused")
}

// awaitReason waits until a mesh without a world gives a reason.
func awaitReason(t *testing.T, m *Mesh, want string) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := m.World(ctx)
		cancel()
		if err == nil || t.Context().Err() != nil {
			t.Fatalf("got %v, want %q", err, want)
		}
		if strings.HasSuffix(err.Error(), want) {
			return
		}
		t.Log(err)
	}
}

// newAnnouncement is that of a new peer.
func newAnnouncement(t testing.TB, mesh string, world int, addrs ...string) *announcement {
	t.Helper()
	a, _ := signed(t, mesh, world, addrs...)
	return a
}

func signed(t testing.TB, mesh string, world int, addrs ...string) (*announcement, crypto.PrivKey) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &announcement{Version: protocolVersion, Mesh: mesh, World: world, Since: time.Now(), Expires: time.Now().Add(lifetime)}
	for _, s := range addrs {
		info, err := node.ParseAddr(s + "/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
		if err != nil {
			t.Fatal(err)
		}
		a.Addrs = append(a.Addrs, info.Addrs...)
	}
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	a, err = openAnnouncement(a.raw)
	if err != nil {
		t.Fatal(err)
	}
	return a, key
}

// stood is a world that has stood on every rank, as its members have signed.
func stood(t *testing.T, r roster, keys map[peer.ID]crypto.PrivKey) *past {
	t.Helper()
	p := &past{roster: r}
	for _, id := range r.Members {
		sig, err := signStand(keys[id], r.Digest)
		if err != nil {
			t.Fatal(err)
		}
		p.Stands = append(p.Stands, sig)
	}
	return p
}

// forgive lets a peer in again that is kept out.
func (m *Mesh) forgive(id peer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contacts[id].barred = time.Time{}
}

// A promise keeps a member from a second one, until the verdict, and from another
// of its epoch for ever.
func TestPromise(t *testing.T) {
	m := join(t, startNode(t, loopback), Config{World: 2})
	other, key := signed(t, "default", 2)
	with := func(epoch uint64, last *past) *proposal {
		p := &proposal{members: []*announcement{m.self, other}, mind: &memory{Promised: epoch, Last: last}}
		slices.SortFunc(p.members, func(a, b *announcement) int { return compareID(a.ID, b.ID) })
		p.roster = newRoster("default", epoch, p.mind.base(), []peer.ID{p.members[0].ID, p.members[1].ID})
		return p
	}
	consider := func(p *proposal) *answer { a, _ := m.consider(p, other.ID); return a }
	first := with(1, nil)
	if a := consider(first); a.Code != answerYes {
		t.Fatal(a)
	}
	if a := consider(with(2, nil)); a.Code != declineBusy {
		t.Errorf("second promise: %+v", a)
	}
	m.release(with(1, nil)) // somebody else's release changes nothing
	if a := consider(with(2, nil)); a.Code != declineBusy {
		t.Errorf("after another's release: %+v", a)
	}
	m.release(first)
	if a := consider(with(1, nil)); a.Code != declineStale || a.Epoch != 1 {
		t.Errorf("an old epoch: %+v", a)
	}
	missed := stood(t, with(4, nil).roster, map[peer.ID]crypto.PrivKey{other.ID: key, m.self.ID: m.node.Host().Peerstore().PrivKey(m.self.ID)})
	forged := &past{missed.roster, [][]byte{missed.Stands[1], missed.Stands[0]}}
	if a := consider(with(5, forged)); a.Code != declineStale {
		t.Errorf("a world that was not proven: %+v", a)
	}
	if a := consider(with(5, missed)); a.Code != declineQuorum { // it is kept out
		t.Errorf("after a lie: %+v", a)
	}
	m.mu.Lock()
	m.due(time.Now()) // forgets those who cannot be met, but not why they are kept out
	if c := m.contacts[other.ID]; c == nil || c.fault == "" {
		t.Errorf("the lie was forgotten: %+v", c)
	}
	m.mu.Unlock()
	m.forgive(other.ID)
	p := with(5, missed)
	if a := consider(p); a.Code != answerYes || a.Base != missed.Digest {
		t.Errorf("after a world that was missed: %+v", a)
	}
	m.release(p)
	if a := consider(with(6, nil)); a.Code != declineStale {
		t.Errorf("another base: %+v", a)
	}
	stranger := with(6, missed)
	stranger.members[0] = newAnnouncement(t, "other", 2)
	if a := consider(stranger); a.Code != refuseName {
		t.Errorf("a stranger: %+v", a)
	}
}
