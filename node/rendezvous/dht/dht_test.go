package dht

import (
	"context"
	"strings"
	"testing"
	"time"

	"peermesh/node"
	"peermesh/node/rendezvous"

	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds every wait for something that must happen.
const soon = 60 * time.Second

func start(t *testing.T) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Transports: []string{node.TCP}})
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

// find has a node look for peers of a mesh by those who serve, until the test ends.
func find(t *testing.T, n *node.Node, mesh string, by *node.Node) (found chan peer.ID, trouble chan error) {
	t.Helper()
	f, err := New(Config{Peers: []string{by.Addrs()[0].String()}})
	if err != nil || f.String() != Form {
		t.Fatal(f, err)
	}
	found, trouble = make(chan peer.ID, 1000), make(chan error, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- f.Find(ctx, rendezvous.Search{Node: n, Mesh: mesh, Found: func(p peer.AddrInfo) { found <- p.ID }, Trouble: func(err error) { trouble <- err }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return found, trouble
}

// TestFind has two peers find each other by a third, who is in another mesh.
func TestFind(t *testing.T) {
	server, a, b := start(t), start(t), start(t)
	find(t, server, "elsewhere", server)
	foundA, _ := find(t, a, "run", server)
	foundB, _ := find(t, b, "run", server)
	for _, of := range []struct {
		found chan peer.ID
		other peer.ID
	}{{foundA, b.ID()}, {foundB, a.ID()}} {
		select {
		case id := <-of.found:
			if id != of.other {
				t.Errorf("found %s, want %s", id, of.other)
			}
		case <-time.After(soon):
			t.Fatal("the two have not found each other")
		}
	}
}

// TestTrouble says who does not serve a DHT, and who is alone in one.
func TestTrouble(t *testing.T) {
	plain := start(t)
	_, trouble := find(t, start(t), "run", plain)
	if err := <-trouble; !strings.Contains(err.Error(), "serves no such DHT") {
		t.Errorf("no server: %v", err)
	}
	alone := start(t)
	_, trouble = find(t, alone, "run", alone)
	if err := <-trouble; !strings.Contains(err.Error(), "nobody else") {
		t.Errorf("alone: %v", err)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{Peers: []string{"/ip4/127.0.0.1/tcp/1"}}); err == nil || !strings.HasPrefix(err.Error(), "dht: ") {
		t.Errorf("an address without an ID: %v", err)
	}
	f, err := New(Config{})
	if err != nil || !f.(*finder).public || len(f.(*finder).peers) == 0 {
		t.Errorf("the public DHT has no peers: %v, %v", f, err)
	}
	if keyOf("a") == keyOf("b") || keyOf("a") != keyOf("a") {
		t.Error("a mesh's key is not its own")
	}
}

// TestForm has the bootstrap form known, and its peers read.
func TestForm(t *testing.T) {
	if f, err := rendezvous.Parse(Form, rendezvous.Config{DHT: []string{start(t).Addrs()[0].String()}}); err != nil || f.String() != Form {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := rendezvous.Parse(Form, rendezvous.Config{DHT: []string{"nobody"}}); err == nil {
		t.Error("nobody serves a DHT")
	}
}
