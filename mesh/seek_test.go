package mesh

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
	"peermesh/node/rendezvous"
)

// formBy brings up a world of peers that are all given the same.
func formBy(t *testing.T, n int, form, listen string, firstListens string) {
	t.Helper()
	meshes := make([]*Mesh, n)
	for i := range n {
		on := listen
		if i == n-1 && firstListens != "" { // the last to come is whom the others wait for
			on = firstListens
		}
		meshes[i] = join(t, startNode(t, on), Config{World: n, Name: "seek", Bootstrap: []string{form}})
	}
	worlds := worldsOf(t, meshes)
	for i, w := range worlds {
		if w.Size() != n || w.Rank() != worlds[i].Rank() {
			t.Errorf("%s: rank %d of %d", form, w.Rank(), w.Size())
		}
	}
}

// TestRendezvous forms worlds by each form, over both kinds of IP.
func TestRendezvous(t *testing.T) {
	const loopback6 = "/ip6/::1/tcp/0"
	t.Run("file", func(t *testing.T) { formBy(t, 4, "file://"+t.TempDir(), loopback, "") })
	t.Run("file, IPv6", func(t *testing.T) { formBy(t, 3, "file://"+filepath.Join(t.TempDir(), "f"), loopback6, "") })
	t.Run("tcp", func(t *testing.T) {
		port := portOf(t, "127.0.0.1")
		formBy(t, 3, "tcp://127.0.0.1:"+port, loopback, "/ip4/127.0.0.1/tcp/"+port)
	})
	t.Run("tcp, IPv6", func(t *testing.T) {
		port := portOf(t, "::1")
		formBy(t, 3, "tcp://[::1]:"+port, loopback6, "/ip6/::1/tcp/"+port)
	})
	t.Run("dns", func(t *testing.T) {
		port := portOf(t, "127.0.0.1")
		formBy(t, 2, "/dns4/localhost/tcp/"+port, loopback, "/ip4/127.0.0.1/tcp/"+port)
	})
}

// TestIPv6 forms a world whose peers have no other addresses, from a multiaddr, by TCP
// and by QUIC.
func TestIPv6(t *testing.T) {
	for _, on := range []string{"/ip6/::1/tcp/0", "/ip6/::1/udp/0/quic-v1"} {
		p := formOn(t, 3, Config{}, on)
		each(t, 3, func(i int) error {
			if size := p.worlds[i].Size(); size != 3 {
				return fmt.Errorf("%s: a world of %d", on, size)
			}
			return nil
		})
	}
}

// portOf is a port that nobody listens on.
func portOf(t *testing.T, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Skipf("not to be had here: %v", err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestRendezvousNamesTrouble wants the reason in the error of a world that never forms.
func TestRendezvousNamesTrouble(t *testing.T) {
	form := "tcp://127.0.0.1:" + portOf(t, "127.0.0.1")
	m := join(t, startNode(t, loopback), Config{World: 2, Bootstrap: []string{form}})
	awaitReason(t, m, "bootstrap "+form+" has found nobody: connection refused")
	m = join(t, startNode(t, loopback), Config{World: 2, Bootstrap: []string{"file://" + t.TempDir()}})
	awaitReason(t, m, "has found nobody yet")
}

// TestRendezvousRefusesChange ends the attempt to join at somebody else's.
func TestRendezvousRefusesChange(t *testing.T) {
	first, other := startNode(t, loopback), startNode(t, loopback)
	where, _, _ := strings.Cut(first.Addrs()[0].String(), "/p2p/")
	form := "tcp://127.0.0.1:" + where[strings.LastIndexByte(where, '/')+1:]
	pins := filepath.Join(t.TempDir(), "pins")
	if err := os.WriteFile(pins, []byte(form+" "+other.ID().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := join(t, startNode(t, loopback), Config{World: 2, Bootstrap: []string{form}, Pins: pins})
	_, err := m.World(t.Context())
	if err == nil || !strings.Contains(err.Error(), "remove its line from "+pins) || !strings.Contains(err.Error(), other.ID().String()) {
		t.Errorf("somebody else is at %s: %v", form, err)
	}
}

// TestJoinRefusesForms wants a form that is badly written to fail at once.
func TestJoinRefusesForms(t *testing.T) {
	n := startNode(t, loopback)
	for _, form := range []string{"tcp://host", "file://there/x", "/dns4"} {
		if _, err := Join(t.Context(), n, Config{World: 2, Bootstrap: []string{form}}); err == nil || !strings.Contains(err.Error(), "mesh: bootstrap: ") {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// told is a finder that knows one peer and repeats it, among many that are not there.
type told struct{ who *node.Node }

func (f told) String() string { return "told" }

func (f told) Find(ctx context.Context, s rendezvous.Search) error {
	where, err := node.ParseAddr(f.who.Addrs()[0].String())
	if err != nil {
		return err
	}
	for range 2 {
		s.Found(where)
	}
	s.Found(peer.AddrInfo{ID: s.Node.ID(), Addrs: where.Addrs})
	<-ctx.Done()
	return nil
}

// TestFinders takes a finder of one's own, and no more peers than there is room for.
func TestFinders(t *testing.T) {
	a, b := startNode(t, loopback), startNode(t, loopback)
	c := Config{World: 2, Finders: []rendezvous.Finder{told{a}}}
	m := join(t, b, c)
	worldsOf(t, []*Mesh{join(t, a, c), m})
	for i := range maxFound + 10 {
		m.found(peer.AddrInfo{ID: peer.ID(fmt.Sprint("nobody ", i)), Addrs: a.Host().Addrs()})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.first) != maxFound {
		t.Errorf("%d bootstrap peers, want %d", len(m.first), maxFound)
	}
}
