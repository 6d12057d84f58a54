package mesh

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
	"peermesh/testnet/simlink"
)

// A peer that does not belong is refused within a second, told why, and the world that
// refuses it goes on.
func TestRefusedInTime(t *testing.T) {
	secret := []byte("a secret of enough bytes")
	for name, c := range map[string]struct {
		door, guest node.Config
		mesh        Config
		want        string
	}{
		"another mesh":    {mesh: Config{Name: "elsewhere", World: 2}, want: `it is in mesh "default", this peer in mesh "elsewhere"`},
		"another size":    {mesh: Config{World: 3}, want: "it wants a world of 2, this peer one of 3"},
		"other terms":     {mesh: Config{World: 2, Terms: []string{"--lr 1"}}, want: "--lr 1"},
		"no secret":       {door: node.Config{Secret: secret}, mesh: Config{World: 2}, want: "secret"},
		"another secret":  {door: node.Config{Secret: secret}, guest: node.Config{Secret: []byte("another, as long as that")}, mesh: Config{World: 2}, want: "secret"},
		"not on the list": {door: node.Config{Allow: make([]peer.ID, 1)}, mesh: Config{World: 2}, want: "allow list"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simlink.New(simlink.Config{Seed: 1, Link: simlink.Link{Latency: time.Millisecond}})
				defer net.Close()
				_, w := pair(t, net, c.door)
				c.mesh.Bootstrap = []string{net.Host(0).Addr()}
				begin := time.Now()
				_, err := enter(t, net, 2, c.guest, c.mesh).World(t.Context())
				if no := (*RefusedError)(nil); !errors.As(err, &no) || no.Peer != w.Peer(w.Rank()) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("told %v, want %q", err, c.want)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("after %s", took)
				}
				if err := w.ctx.Err(); err != nil {
					t.Errorf("the world has ended: %v", err)
				}
			})
		})
	}
}

// One that speaks an older version is told so at once, whatever follows the version.
func TestOlderVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simlink.New(simlink.Config{Seed: 1, Link: simlink.Link{Latency: time.Millisecond}})
		defer net.Close()
		m, w := pair(t, net, node.Config{})
		n, err := node.Start(t.Context(), net.Host(2).Config())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		for version := range uint16(protocolVersion) {
			a := &announcement{Version: version, Mesh: defaultName, World: 2}
			if err := a.seal(n.Host().Peerstore().PrivKey(n.ID())); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			s := speak(t, n, m.node, meetProtocol, appendBlocks(nil, [][]byte{a.raw}))
			reply, err := readAnswer(s)
			if err != nil || reply.Code != refuseVersion || !reply.final() || !strings.Contains(reply.Text, "version") || time.Since(begin) > time.Second {
				t.Errorf("version %d is told %+v after %s, %v", version, reply, time.Since(begin), err)
			}
			s.Close()
		}
		if err := w.ctx.Err(); err != nil {
			t.Errorf("the world has ended: %v", err)
		}
	})
}

// However many strangers come, they cost a line a second.
func TestRefusalsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Mesh{}
		for range 3 {
			for i := range 100 {
				m.logRefusal("stranger", "a reason")
				if m.unlogged != i {
					t.Fatalf("after %d refusals %d are not logged", i+1, m.unlogged)
				}
			}
			time.Sleep(refusalEvery)
		}
	})
}

// pair is the world of hosts 0 and 1 of a network, as host 0 has it. A list, if there is
// one, is of these two.
func pair(t *testing.T, net *simlink.Network, extra node.Config) (*Mesh, *World) {
	t.Helper()
	if len(extra.Allow) > 0 {
		extra.Allow = nil
		for host := range 2 {
			id, err := peer.IDFromPrivateKey(net.Host(host).Config().Key)
			if err != nil {
				t.Fatal(err)
			}
			extra.Allow = append(extra.Allow, id)
		}
	}
	m := enter(t, net, 0, extra, Config{World: 2, Min: 1})
	enter(t, net, 1, extra, Config{World: 2, Min: 1, Bootstrap: []string{net.Host(0).Addr()}})
	w, err := m.World(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

// enter joins a mesh from a host of a network.
func enter(t *testing.T, net *simlink.Network, host int, extra node.Config, c Config) *Mesh {
	t.Helper()
	nc := net.Host(host).Config()
	nc.Secret, nc.Allow = extra.Secret, extra.Allow
	n, err := node.Start(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Join(t.Context(), n, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), n.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}
