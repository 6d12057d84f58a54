package rendezvous

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"peermesh/node"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// Bounds of a file, which others can write.
const (
	maxFile       = 4 << 20
	maxEntries    = 1024
	maxEntryAddrs = 32
)

// An entry is what a peer writes about itself, one line of JSON.
type entry struct {
	Mesh  string    `json:"mesh"`
	Since time.Time `json:"since"` // when its process began to look
	Peer  []string  `json:"peer"`  // multiaddrs with one ID

	id    peer.ID
	addrs []multiaddr.Multiaddr
}

// same reports whether another entry is of the same process, at the same addresses.
func (e entry) same(o entry) bool {
	return e.id == o.id && e.Mesh == o.Mesh && e.Since.Equal(o.Since) && slices.Equal(e.Peer, o.Peer)
}

// check understands the addresses.
func (e *entry) check() error {
	if len(e.Peer) == 0 || len(e.Peer) > maxEntryAddrs {
		return fmt.Errorf("%d addresses, want 1 to %d", len(e.Peer), maxEntryAddrs)
	}
	for _, text := range e.Peer {
		a, err := node.ParseAddr(text)
		if err != nil {
			return err
		}
		if e.id != "" && e.id != a.ID {
			return errors.New("addresses of two peers")
		}
		e.id, e.addrs = a.ID, append(e.addrs, a.Addrs...)
	}
	return nil
}

// readEntries reads a whole file.
func readEntries(data []byte) (all []entry, err error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	for n, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(all) == maxEntries {
			return nil, fmt.Errorf("there are more than %d entries", maxEntries)
		}
		var e entry
		err := json.Unmarshal(line, &e)
		if err == nil {
			err = e.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d is not an entry: %w", n+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// writeEntries is the reverse of readEntries.
func writeEntries(all []entry) ([]byte, error) {
	if len(all) > maxEntries {
		return nil, fmt.Errorf("there are %d entries, and room for %d", len(all), maxEntries)
	}
	var b bytes.Buffer
	for _, e := range all {
		if err := json.NewEncoder(&b).Encode(e); err != nil {
			return nil, err
		}
	}
	if b.Len() > maxFile {
		return nil, fmt.Errorf("the entries are longer than %d bytes", maxFile)
	}
	return b.Bytes(), nil
}
