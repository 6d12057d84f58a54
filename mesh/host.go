package mesh

import (
	"path/filepath"

	"github.com/multiformats/go-multiaddr"
)

// Host names the machine that this rank is on, alike on all ranks that reach each other
// through its memory, whether they do or not; or it is empty, where there is no such memory.
// It is what this rank knows of itself: who needs to agree on it has to be told by each.
func (w *World) Host() string { return hostOf(w.node.Addrs()) }

// hostOf is the folder in which the peers of a machine have their sockets, which package
// node names after the running system and the folder itself.
func hostOf(addrs []multiaddr.Multiaddr) string {
	for _, a := range addrs {
		if path, err := a.ValueForProtocol(multiaddr.P_UNIX); err == nil {
			return filepath.Base(filepath.Dir(path))
		}
	}
	return ""
}
