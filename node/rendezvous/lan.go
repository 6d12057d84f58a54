package rendezvous

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
)

// lan finds peers of the local network by multicast DNS.
type lan struct{}

func (lan) String() string { return lanForm }

// Find announces the node until ctx ends, and tells of those who do likewise.
func (lan) Find(ctx context.Context, s Search) error {
	service := mdns.NewMdnsService(s.Node.Host(), lanService(s.Mesh), notifee(s.Found))
	if err := service.Start(); err != nil {
		return fmt.Errorf("rendezvous: lan: %w", err)
	}
	<-ctx.Done()
	if err := service.Close(); err != nil {
		logger.Debugf("the announcement on the local network has ended with %v", err)
	}
	return nil
}

// lanService is a service's name as RFC 6763 has it: at most 15 letters and digits. It
// gives the mesh's name away to nobody who does not know it.
func lanService(mesh string) string {
	sum := sha256.Sum256([]byte("peermesh " + mesh))
	return "_pm-" + hex.EncodeToString(sum[:5]) + "._udp"
}

type notifee func(peer.AddrInfo)

func (n notifee) HandlePeerFound(p peer.AddrInfo) { n(p) }
