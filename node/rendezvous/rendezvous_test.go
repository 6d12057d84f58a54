package rendezvous

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"peermesh/node"

	"github.com/libp2p/go-libp2p/core/peer"
	madns "github.com/multiformats/go-multiaddr-dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds every wait for something that must happen.
const soon = 30 * time.Second

// start brings up a node on a loopback that the test closes.
func start(t testing.TB, on ...string) *node.Node {
	t.Helper()
	if len(on) == 0 {
		on = []string{"/ip4/127.0.0.1/tcp/0"}
	}
	n, err := node.Start(t.Context(), node.Config{Listen: on, Transports: []string{node.TCP}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// A searcher is a finder at work.
type searcher struct {
	found   chan peer.AddrInfo
	trouble chan error
	stop    context.CancelFunc
	done    chan error
}

// search has a node look for others until the test ends, or stop.
func search(t testing.TB, n *node.Node, form string, c Config) *searcher {
	t.Helper()
	f, err := Parse(form, c)
	if err != nil {
		t.Fatal(err)
	}
	if f.String() != form {
		t.Errorf("%s calls itself %s", form, f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &searcher{found: make(chan peer.AddrInfo, 100), trouble: make(chan error, 1000), stop: cancel, done: make(chan error, 1)}
	go func() {
		s.done <- f.Find(ctx, Search{Node: n, Mesh: "test", Found: func(p peer.AddrInfo) { s.found <- p }, Trouble: func(err error) { s.trouble <- err }})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-s.done:
			s.done <- err
		case <-time.After(soon):
			t.Errorf("%s goes on", form)
		}
	})
	return s
}

// next is the next of what comes soon.
func next[T any](t testing.TB, what string, from chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(soon):
		t.Fatalf("not within %s: %s", soon, what)
	}
	return v
}

func (s *searcher) finds(t testing.TB, n *node.Node) peer.AddrInfo {
	t.Helper()
	p := next(t, "a peer", s.found)
	if p.ID != n.ID() || len(p.Addrs) == 0 {
		t.Errorf("found %v, want %s", p, n.ID())
	}
	return p
}

func port(n *node.Node) string {
	where, _ := peer.SplitAddr(n.Addrs()[0])
	_, port, _ := strings.Cut(where.String(), "/tcp/")
	return port
}

func TestParse(t *testing.T) {
	for _, form := range []string{"file:///tmp/x", "file://localhost/tmp/x", "tcp://host:1", "tcp://127.0.0.1:1", "tcp://[::1]:1",
		"tcp://[fe80::1%25eth0]:1", "/dns4/host/tcp/1", "/dns6/host/udp/1/quic-v1", "/dnsaddr/example.org", "lan"} {
		if f, err := Parse(form, Config{}); err != nil || f.String() != form || !Is(form) {
			t.Errorf("%s: %v, %v", form, f, err)
		}
	}
	for _, form := range []string{"file://host/x", "file://", "file:relative", "file:///x?y", "tcp://host", "tcp://:1", "tcp://host:1/x",
		"tcp://host:99999", "tcp://me@host:1", "/dns4/host/tcp/x", "/ip4/127.0.0.1/tcp/1", "wan", "", "udp://host:1"} {
		if f, err := Parse(form, Config{}); err == nil || !strings.HasPrefix(err.Error(), "rendezvous: ") {
			t.Errorf("%s is taken for %v, %v", form, f, err)
		}
	}
	id := start(t).ID().String()
	for _, form := range []string{"/ip4/127.0.0.1/tcp/1", "/dns4/host/tcp/1/p2p/" + id, ""} {
		if Is(form) {
			t.Errorf("%s is no rendezvous", form)
		}
	}
}

// TestDHT is known only in a program that has one.
func TestDHT(t *testing.T) {
	if _, err := Parse("dht", Config{}); err == nil || !strings.Contains(err.Error(), "import _") || !Is("dht") {
		t.Errorf("without a DHT: %v", err)
	}
	defer ProvideDHT(nil)
	var got Config
	ProvideDHT(func(c Config) (Finder, error) {
		got = c
		return lan{}, nil
	})
	if f, err := Parse("dht", Config{DHT: []string{"x"}}); f != (lan{}) || err != nil || len(got.DHT) != 1 {
		t.Errorf("%v, %v, %+v", f, err, got)
	}
}

// TestTCP learns who is at a port, over both kinds of IP, also from one who comes later.
func TestTCP(t *testing.T) {
	for _, on := range []struct{ listen, host string }{{"/ip4/127.0.0.1/tcp/0", "127.0.0.1"}, {"/ip6/::1/tcp/0", "[::1]"}} {
		first, second := start(t, on.listen), start(t, on.listen)
		form := "tcp://" + on.host + ":" + port(first)
		search(t, second, form, Config{}).finds(t, first)
		own := search(t, first, form, Config{})
		if err := next(t, "the end of a search for oneself", own.done); err != nil || len(own.found) > 0 {
			t.Errorf("found itself: %v", err)
		}
		own.done <- nil
	}
}

// TestTCPLater has the first peer come after the others.
func TestTCPLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	s := search(t, start(t), "tcp://127.0.0.1:"+port, Config{})
	if err := next(t, "the reason", s.trouble); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody is there: %v", err)
	}
	s.finds(t, start(t, "/ip4/127.0.0.1/tcp/"+port))
}

// TestPins wants the same peer the second time.
func TestPins(t *testing.T) {
	c := Config{Pins: filepath.Join(t.TempDir(), "new", "peer.key.pins")}
	here, first := start(t), start(t)
	form := "tcp://127.0.0.1:" + port(first)
	for range 2 {
		search(t, here, form, c).finds(t, first)
	}
	if data, err := os.ReadFile(c.Pins); err != nil || string(data) != form+" "+first.ID().String()+"\n" {
		t.Errorf("%q, %v", data, err)
	}
	on := first.Addrs()[0].String()
	on, _, _ = strings.Cut(on, "/p2p/")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	other := start(t, on)
	s := search(t, here, form, c)
	err := next(t, "an error", s.done)
	s.done <- nil
	var changed *ChangedError
	if !errors.As(err, &changed) || changed.Was != first.ID() || changed.Is != other.ID() || len(s.found) > 0 {
		t.Fatalf("somebody else is there: %v", err)
	}
	if !strings.Contains(err.Error(), "remove its line from "+c.Pins) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no remedy: %v", err)
	}
	if err := os.WriteFile(c.Pins, []byte("# nobody\ntcp://x:1 who\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = search(t, here, form, c)
	if err := next(t, "an error", s.done); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a file that is none: %v", err)
	}
	s.done <- nil
}

// TestNames resolves what only the test's resolver knows.
func TestNames(t *testing.T) {
	first, here := start(t), start(t)
	stub := &madns.MockResolver{
		IP:  map[string][]net.IPAddr{"first.test": {{IP: net.IPv4(127, 0, 0, 1)}}},
		TXT: map[string][]string{"_dnsaddr.mesh.test": {"dnsaddr=" + first.Addrs()[0].String(), "dnsaddr=" + here.Addrs()[0].String()}},
	}
	resolver, err := madns.NewResolver(madns.WithDefaultResolver(stub))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Resolver: resolver}
	for _, form := range []string{"tcp://first.test:" + port(first), "/dns4/first.test/tcp/" + port(first), "/dnsaddr/mesh.test"} {
		search(t, here, form, c).finds(t, first)
	}
	for _, form := range []string{"tcp://nobody.test:1", "/dns4/first.test"} {
		if err := next(t, form, search(t, here, form, c).trouble); err == nil {
			t.Errorf("%s: no trouble", form)
		}
	}
}

// TestLan finds each other where multicast goes round.
func TestLan(t *testing.T) {
	if !multicasts(t) {
		t.Skip("no interface here carries multicast")
	}
	a, b := start(t, "/ip4/0.0.0.0/tcp/0"), start(t, "/ip4/0.0.0.0/tcp/0")
	s := search(t, a, "lan", Config{})
	search(t, b, "lan", Config{}).finds(t, a)
	s.finds(t, b)
}

// multicasts reports whether a datagram to a multicast group comes back.
func multicasts(t *testing.T) bool {
	group := &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}
	in, err := net.ListenMulticastUDP("udp4", nil, group)
	if err != nil {
		return false
	}
	defer in.Close()
	out, err := net.DialUDP("udp4", nil, group)
	if err != nil {
		return false
	}
	defer out.Close()
	if _, err := out.Write(make([]byte, 12)); err != nil {
		return false
	}
	if err := in.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _, err = in.ReadFrom(make([]byte, 512))
	return err == nil
}
