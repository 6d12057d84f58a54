package node

import (
	"errors"
	"fmt"
	"slices"

	"peermesh/node/internal/memory"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// A Bring makes a transport that a node has from elsewhere. The gater says with whom
// the node has to do; what a connection takes is to be counted in limits.
type Bring func(self peer.ID, limits network.ResourceManager, gater connmgr.ConnectionGater) (transport.Transport, error)

// lean reports whether the host is put together here rather than by libp2p.New. That
// goes by way of a container for dependency injection, which takes half of the time
// in which a node starts: much for those of whom a thousand live in one process for a
// moment each, nothing for those that have sockets. The parts are the same, but for the
// record of its addresses that a libp2p host signs for those to read who have heard of
// them from others: in one process nobody does.
func (p plan) lean() bool {
	socket := func(t string) bool { return t != Memory && t != None }
	return len(p.more) == 0 && !p.relay.serve && !p.relay.use && !slices.ContainsFunc(p.transports, socket)
}

// assemble makes the host of a node without sockets.
func (p plan) assemble(key crypto.PrivKey, limits network.ResourceManager, manager connmgr.ConnManager) (h host.Host, err error) {
	self, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.AddPrivKey(self, key), store.AddPubKey(self, key.GetPublic())); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	bus := eventbus.NewBus()
	s, err := swarm.NewSwarm(self, store, bus, swarm.WithConnectionGater(gater{p.access}), swarm.WithResourceManager(limits),
		swarm.WithDialRanker(p.relay.ranker()), swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := p.carry(s, key, self, limits); err != nil {
		return nil, errors.Join(err, s.Close(), store.Close())
	}
	basic, err := basichost.NewHost(s, &basichost.HostOpts{EventBus: bus, ConnManager: manager, UserAgent: userAgent, DisableSignedPeerRecord: true})
	if err != nil {
		return nil, errors.Join(err, s.Close(), store.Close())
	}
	basic.Start()
	return basic, nil
}

// carry gives the swarm its transports, behind the guard if there is one.
func (p plan) carry(s *swarm.Swarm, key crypto.PrivKey, self peer.ID, limits network.ResourceManager) error {
	var all []transport.Transport
	if slices.Contains(p.transports, Memory) {
		t, err := memory.New(key, limits, gater{p.access}, nil)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	if p.bring != nil {
		t, err := p.bring(self, limits, gater{p.access})
		if err != nil {
			return fmt.Errorf("the transport that was brought: %w", err)
		}
		all = append(all, t)
	}
	if !p.access.open() {
		all = p.access.guardAll(all)
	}
	for _, t := range all {
		if err := s.AddTransport(t); err != nil {
			return err
		}
	}
	return nil
}
