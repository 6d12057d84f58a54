package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	libp2pevent "github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"peermesh/node"
)

const (
	// clockProtocol tells the time: 8 bytes, ns since 1970, little-endian.
	clockProtocol = "/peermesh/clock/1"
	// maxWays bounds the addresses of a bootstrap peer that are tried.
	maxWays = 16
)

// serveClock has a node tell the time to whoever asks, as long as ctx lasts.
func serveClock(ctx context.Context, n *node.Node) error {
	_, err := n.Handle(ctx, clockProtocol, func(s *node.Stream) {
		now := binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
		if _, err := s.Write(now); err != nil {
			s.Reset(err)
			return
		}
		s.Close()
	})
	return err
}

// seek looks for the bootstrap peer: at the address given, and once it was met there at
// all that it says it has.
func (d *doctorCmd) seek(ctx context.Context) (*way, error) {
	to, err := node.ParseAddr(d.Bootstrap)
	if err != nil {
		return nil, usagef("%w", err)
	}
	c := node.Config{}
	if d.Secret != "" {
		if c.Secret, err = node.ReadSecret(d.Secret); err != nil {
			return nil, usagef("--secret: %w", err)
		}
	}
	w := &way{ID: to.ID.String()}
	others, err := w.meet(ctx, c, to, true)
	if err != nil {
		return nil, err
	}
	for _, a := range others[:min(len(others), maxWays)] {
		if slices.ContainsFunc(to.Addrs, a.Equal) || inMemory(a) {
			continue
		}
		if _, err := w.meet(ctx, c, peer.AddrInfo{ID: to.ID, Addrs: []multiaddr.Multiaddr{a}}, false); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// meet dials one address from a node of its own, so that it is this address that is
// tried. The first time it asks for the time, and what else there is to know.
func (w *way) meet(ctx context.Context, c node.Config, to peer.AddrInfo, first bool) (others []multiaddr.Multiaddr, err error) {
	n, err := node.Start(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("a node to look from: %w", err)
	}
	defer n.Close()
	seen, err := n.Host().EventBus().Subscribe(new(libp2pevent.EvtPeerIdentificationCompleted))
	if err != nil {
		return nil, fmt.Errorf("a node to look from: %w", err)
	}
	defer seen.Close()
	dial, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	begin := time.Now()
	err = n.Connect(dial, to)
	t := try{Addr: to.Addrs[0].String(), Took: time.Since(begin)}
	if err != nil {
		t.Err = err.Error()
		if dialed, ok := errors.AsType[*node.DialError](err); ok {
			t.Err = dialed.Reason()
		}
	}
	w.Tries = append(w.Tries, t)
	if err != nil || !first {
		return nil, nil
	}
	select {
	case e := <-seen.Out():
		w.Observed = ipOf(e.(libp2pevent.EvtPeerIdentificationCompleted).ObservedAddr)
	case <-dial.Done():
	}
	w.Clock = w.ask(dial, n, to.ID) == nil
	return n.Host().Peerstore().Addrs(to.ID), nil
}

// ask compares clocks: the answer is taken to be of the middle of the time that it took.
// A peer that does not tell is of another kind.
func (w *way) ask(ctx context.Context, n *node.Node, id peer.ID) error {
	for i := range clockRounds {
		begin := time.Now()
		s, err := n.Open(ctx, id, clockProtocol)
		if err != nil {
			return err
		}
		var now [8]byte
		_, err = io.ReadFull(s, now[:])
		took := time.Since(begin)
		s.Close()
		if err != nil {
			return err
		}
		if i == 0 || took < w.Round {
			theirs := time.Unix(0, int64(binary.LittleEndian.Uint64(now[:])))
			w.Round, w.Skew = took, theirs.Sub(begin.Add(took/2))
		}
	}
	return nil
}

// ipOf is the IP address of a multiaddr, if it has one.
func ipOf(a multiaddr.Multiaddr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(ip) // of what is none: the zero Addr
	return addr.Unmap()
}
