package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

const (
	// MaxAllow bounds the peers of an allow list.
	MaxAllow = 1 << 16
	// maxAllowFile bounds its file in bytes, room for comments included.
	maxAllowFile = 16 << 20
)

// ReadAllow reads a list of peers, for Config.Allow: one peer ID a line; empty
// lines, and what follows a #, are passed over. An error names the line.
func ReadAllow(path string) ([]peer.ID, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("node: cannot open allow list: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAllowFile+1))
	if err != nil {
		return nil, fmt.Errorf("node: allow list %s: %w", path, err)
	}
	if len(data) > maxAllowFile {
		return nil, fmt.Errorf("node: allow list %s: more than %d bytes", path, maxAllowFile)
	}
	ids, err := parseAllow(data)
	if err != nil {
		return nil, fmt.Errorf("node: allow list %s: %w", path, err)
	}
	return ids, nil
}

// parseAllow refuses a list that allows nobody: in a Config it would mean
// everybody.
func parseAllow(data []byte) ([]peer.ID, error) {
	var ids []peer.ID
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		id, err := peer.Decode(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %.80q is not a peer ID such as 12D3KooW…: %w", n, text, err)
		}
		if len(ids) == MaxAllow {
			return nil, fmt.Errorf("line %d: more than %d peers", n, MaxAllow)
		}
		ids = append(ids, id)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no peer in it")
	}
	return ids, nil
}

// A gater keeps libp2p from dialling whoever is not on the list, and is a second
// lock behind access.admit, which refuses inbound connections and says why. When the
// node closes, it keeps libp2p's own services from dialling anyone.
type gater struct{ *access }

func (g gater) dials(p peer.ID) bool { return g.allowed(p) && !g.shut.Load() }

func (g gater) InterceptPeerDial(p peer.ID) bool                        { return g.dials(p) }
func (g gater) InterceptAddrDial(p peer.ID, _ multiaddr.Multiaddr) bool { return g.dials(p) }
func (g gater) InterceptAccept(network.ConnMultiaddrs) bool             { return true }
func (g gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	return g.allowed(c.RemotePeer()), 0
}

// InterceptSecured lets inbound strangers pass as far as admit, because a
// connection that ends here could not tell the other side the reason.
func (g gater) InterceptSecured(d network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return d == network.DirInbound || g.allowed(p)
}
