package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// unreachable is an address that only nodes of this process with Memory can dial.
var unreachable = []string{"/memory/0"}

// behind starts a node that others reach through the relay only: it listens in
// the memory of a process, of which the relay's transports know nothing.
func behind(t *testing.T, c Config, relay *Node) *Node {
	t.Helper()
	c.Listen, c.Transports = unreachable, []string{TCP, QUIC, Memory}
	c.NAT, c.Relays = true, []string{relay.Addrs()[0].String()}
	return start(t, c)
}

// throughRelay is where a peer is said to be by its announcements, less what is
// direct.
func throughRelay(n *Node) peer.AddrInfo {
	info := peer.AddrInfo{ID: n.ID()}
	for _, a := range n.Host().Addrs() {
		if isRelayed(a) {
			info.Addrs = append(info.Addrs, a)
		}
	}
	return info
}

// connect tries until the peer has its reservation at the relay.
func connect(t *testing.T, from *Node, to peer.AddrInfo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := from.Connect(ctx, to)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// Two peers that cannot be dialled meet through a third, in public and in
// private, and send each other more than libp2p's relays would let through.
func TestRelay(t *testing.T) {
	for name, c := range map[string]Config{"public": {}, "private": {Secret: ours}} {
		t.Run(name, func(t *testing.T) {
			c.Listen, c.Relay = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}, true
			relay := start(t, c)
			c.Relay = false
			a, b := behind(t, c, relay), behind(t, c, relay)
			stop, err := a.Handle(t.Context(), "/echo", func(s *Stream) {
				if _, err := io.Copy(s, s); err != nil {
					t.Error(err)
				}
				s.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			connect(t, b, throughRelay(a))
			if !b.Connected(a.ID()) || !b.Relayed(a.ID()) || b.Relayed(relay.ID()) || b.Relayed("nobody") {
				t.Error("who is relayed?")
			}
			echo(t, b, a.ID(), 1<<20)
			for _, c := range b.Host().Network().ConnsToPeer(a.ID()) {
				if !c.Stat().Limited {
					t.Error("not limited: whoever does not ask for it may use it")
				}
			}
		})
	}
}

// A relay that closes stays until those whom it has brought together have parted, but not
// for long.
func TestRelayLingers(t *testing.T) {
	for name, part := range map[string]bool{"they part": true, "they stay": false} {
		t.Run(name, func(t *testing.T) {
			c := Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Relay: true}
			relay := start(t, c)
			c.Relay = false
			a, b := behind(t, c, relay), behind(t, c, relay)
			connect(t, b, throughRelay(a))
			if !b.Relayed(a.ID()) || !relay.carries() {
				t.Fatal("nobody is relayed")
			}
			began, closed := time.Now(), make(chan error, 1)
			go func() { closed <- relay.Close() }()
			if part {
				<-relay.Context().Done()
				if relayed := b.Relayed(a.ID()); !relayed && time.Since(began) < lingerWait {
					t.Error("cut off before they could part")
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := <-closed; err != nil || !part && time.Since(began) < lingerWait {
				t.Errorf("closed after %v: %v", time.Since(began), err)
			}
		})
	}
}

// echo sends bytes and wants them back.
func echo(t *testing.T, from *Node, to peer.ID, size int) {
	t.Helper()
	s, err := from.Open(t.Context(), to, "/echo")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sent := make([]byte, size)
	rand.Read(sent)
	wrote := make(chan error, 1)
	go func() {
		_, err := s.Write(sent)
		if err == nil {
			err = s.CloseWrite()
		}
		wrote <- err
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came back: %v", len(got), size, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// A stranger to the secret cannot be relayed to a member, even by a relay that
// does not ask for one.
func TestRelayIsNoBackDoor(t *testing.T) {
	relay := start(t, Config{Relay: true})
	member := behind(t, Config{}, relay)
	stranger := behind(t, Config{}, relay)
	connect(t, stranger, throughRelay(member)) // a way there is
	private := behind(t, Config{Allow: []peer.ID{relay.ID(), member.ID()}}, relay)
	connect(t, member, throughRelay(private))
	stop, err := private.Handle(t.Context(), "/echo", func(s *Stream) {
		if !private.Relayed(s.Peer()) {
			t.Error("not through the relay")
		}
		if _, err := io.Copy(s, s); err == nil {
			s.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	echo(t, member, private.ID(), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = stranger.Connect(ctx, throughRelay(private))
	if err == nil {
		_, err = stranger.Open(ctx, private.ID(), "/echo")
	}
	if err == nil || private.Host().Network().Connectedness(stranger.ID()) != network.NotConnected {
		t.Errorf("a stranger came in through the relay: %v", err)
	}
	t.Log(err)
}

// Who is not behind a NAT never uses a relay, even one it is told of.
func TestRelayIsNotUsedByAccident(t *testing.T) {
	relay := start(t, Config{Relay: true})
	hidden := behind(t, Config{}, relay)
	waitReserved(t, relay, hidden)
	outside := start(t, Config{})
	if err := outside.Connect(t.Context(), throughRelay(hidden)); err == nil {
		t.Error("connected through the relay")
	}
}

// waitReserved uses a node behind the relay to see that another can be reached.
func waitReserved(t *testing.T, relay, n *Node) {
	t.Helper()
	connect(t, behind(t, Config{}, relay), throughRelay(n))
}

func TestRelayResources(t *testing.T) {
	r, err := Config{Relay: true, Peers: 100}.relaying(new(access))
	if err != nil {
		t.Fatal(err)
	}
	res := r.resources()
	if res.MaxCircuits < 99 || res.MaxReservations < 100 || res.MaxReservationsPerIP < 100 || res.Limit.Duration < 24*time.Hour || res.Limit.Data < 1<<40 {
		t.Errorf("%+v, %+v", res, res.Limit)
	}
}
