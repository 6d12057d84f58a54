package node

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"go.uber.org/goleak"

	"peermesh/node/internal/memory"
)

// whole has a node made by libp2p.New, whatever else it is told.
var whole = []libp2p.Option{func(*libp2p.Config) error { return nil }}

// The host of a node without sockets is made of the same parts as libp2p's own: it
// speaks the same protocols, and the two let each other in or not as any two do.
func TestLeanIsTheSame(t *testing.T) {
	for name, c := range map[string]Config{"open": {}, "secret": {Secret: ours}} {
		t.Run(name, func(t *testing.T) {
			c.Transports, c.Listen = []string{Memory}, []string{"/memory/0"}
			lean := start(t, c)
			c.Options = whole
			other := start(t, c)
			var speak [2][]protocol.ID
			for i, n := range []*Node{lean, other} {
				speak[i] = n.Host().Mux().Protocols()
				slices.Sort(speak[i])
			}
			if !slices.Equal(speak[0], speak[1]) {
				t.Errorf("lean speaks %v, whole %v", speak[0], speak[1])
			}
			if err := errors.Join(lean.Connect(t.Context(), info(t, other)), other.Connect(t.Context(), info(t, lean))); err != nil {
				t.Error(err)
			}
			stranger := start(t, Config{Transports: []string{Memory}, Listen: []string{"/memory/0"}, Secret: theirs})
			if err := stranger.Connect(t.Context(), info(t, lean)); !errors.Is(err, ErrSecret) {
				t.Errorf("a stranger: %v", err)
			}
		})
	}
}

// A transport from elsewhere serves a lean host and one of libp2p's alike.
func TestBring(t *testing.T) {
	for _, options := range [][]libp2p.Option{nil, whole} {
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Key: key, Transports: []string{None}, Listen: []string{"/memory/0"}, Options: options}
		c.Transport = func(self peer.ID, limits network.ResourceManager, gater connmgr.ConnectionGater) (transport.Transport, error) {
			return memory.New(key, limits, gater, nil)
		}
		a, b := start(t, c), start(t, Config{Transports: []string{Memory}, Listen: []string{"/memory/0"}})
		if err := b.Connect(t.Context(), info(t, a)); err != nil {
			t.Error(err)
		}
	}
}

// One that cannot be made leaves nothing behind. (libp2p.New would leave its swarm.)
func TestBringFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	odd := errors.New("odd")
	_, err := Start(t.Context(), Config{
		Transports: []string{None}, Listen: []string{"/memory/0"},
		Transport: func(peer.ID, network.ResourceManager, connmgr.ConnectionGater) (transport.Transport, error) {
			return nil, odd
		},
	})
	if !errors.Is(err, odd) || !strings.HasPrefix(err.Error(), "node: cannot start libp2p: ") {
		t.Error(err)
	}
}
