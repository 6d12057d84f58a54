package rendezvous

import (
	"context"
	"errors"
	"fmt"

	"peermesh/node"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// maxNamed bounds how many addresses of one name are looked at.
const maxNamed = 64

// A named finder knows where somebody is and not who.
type named struct {
	form   string
	at     multiaddr.Multiaddr
	config Config
}

func (f *named) String() string { return f.form }

// Find asks for the name again and again until somebody has answered at one of its
// addresses: the name of a machine that has just started may not be known yet.
func (f *named) Find(ctx context.Context, s Search) error {
	pins, err := openPins(f.config.Pins)
	if err != nil {
		return err
	}
	return again(ctx, func() (bool, error) {
		done, err := f.look(ctx, s, pins)
		if changed := (*ChangedError)(nil); errors.As(err, &changed) || done && err != nil {
			return true, err
		}
		if ctx.Err() == nil {
			s.trouble(err)
		}
		return done, nil
	})
}

// look goes through the addresses once. An error goes with done if it will not mend.
func (f *named) look(ctx context.Context, s Search, pins *pins) (done bool, err error) {
	soon, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	all, err := f.config.Resolver.Resolve(soon, f.at)
	if err != nil {
		return false, fmt.Errorf("the name cannot be resolved: %w", err)
	}
	if len(all) == 0 {
		return false, errors.New("the name stands for nothing")
	}
	var failed error
	for _, at := range all[:min(len(all), maxNamed)] {
		where, id := peer.SplitAddr(at)
		if id != "" { // from a TXT record
			if id != s.Node.ID() && len(where) > 0 {
				s.Found(peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{where}})
			}
			done = true
			continue
		}
		if !dialable(where) {
			failed = errors.Join(failed, fmt.Errorf("%s has no port", where))
			continue
		}
		is, err := f.meet(ctx, s, where, pins)
		if is {
			return true, err
		}
		failed = errors.Join(failed, err)
	}
	if done {
		return true, nil
	}
	return false, failed
}

// meet learns who is at an address. It is over with the first that is there, be it
// this node itself, and with one that is another than it was.
func (f *named) meet(ctx context.Context, s Search, at multiaddr.Multiaddr, pins *pins) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	id, err := s.Node.Learn(ctx, at)
	if errors.Is(err, node.ErrSelf) {
		return true, nil
	}
	if id != "" && pins.get(f.form) != "" && pins.get(f.form) != id {
		return true, &ChangedError{Form: f.form, Was: pins.get(f.form), Is: id, File: f.config.Pins}
	}
	if err != nil {
		return false, err
	}
	if err := pins.set(f.form, id); err != nil {
		return true, err
	}
	s.Found(peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{at}})
	return true, nil
}

// dialable reports whether an address is more than a machine's.
func dialable(a multiaddr.Multiaddr) bool {
	_, tcp := a.ValueForProtocol(multiaddr.P_TCP)
	_, udp := a.ValueForProtocol(multiaddr.P_UDP)
	return tcp == nil || udp == nil
}
