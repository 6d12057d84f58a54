package mesh

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// Bounds and defaults of a Config.
const (
	// MaxWorld bounds the members of a world: each holds a control stream to
	// every other (see neighbours).
	MaxWorld = 256
	// MaxName bounds a mesh's name in bytes.
	MaxName = 64

	defaultName    = "default"
	defaultSilence = 3 * time.Second
	minSilence     = 100 * time.Millisecond
	defaultWait    = 5 * time.Minute
)

// Config says which mesh to join and what world to form in it.
type Config struct {
	// Name tells meshes apart: peers of another name are strangers. Empty:
	// "default".
	Name string

	// World is the number of ranks, this one included; from 1 to MaxWorld. Every
	// member must want the same.
	World int

	// Bootstrap holds multiaddrs with /p2p/ID of peers to meet first. One that
	// can be reached is enough, and it is needed only until the world has formed.
	// Exactly the first peer of a mesh has none; its own address is ignored.
	Bootstrap []string

	// Silence is how long nothing may be heard of a member before it counts as
	// dead. Zero: 3 s. Give every member the same.
	Silence time.Duration

	// Wait bounds the forming of a world. Zero: 5 min.
	Wait time.Duration
}

// plan checks a Config and fills in its zeros.
func (c Config) plan(self peer.ID) (Config, []peer.AddrInfo, error) {
	if c.Name == "" {
		c.Name = defaultName
	}
	if !validName(c.Name) {
		return c, nil, fmt.Errorf("mesh: name %q: want 1 to %d bytes of printable text", c.Name, MaxName)
	}
	if c.World < 1 || c.World > MaxWorld {
		return c, nil, fmt.Errorf("mesh: a world of %d: want 1 to %d ranks", c.World, MaxWorld)
	}
	if c.Silence == 0 {
		c.Silence = defaultSilence
	}
	if c.Silence < minSilence {
		return c, nil, fmt.Errorf("mesh: silence of %s: want at least %s", c.Silence, minSilence)
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	if c.Wait < 0 {
		return c, nil, fmt.Errorf("mesh: cannot wait %s", c.Wait)
	}
	var first []peer.AddrInfo
	for _, s := range c.Bootstrap {
		a, err := node.ParseAddr(s)
		if err != nil {
			return c, nil, fmt.Errorf("mesh: bootstrap: %w", err)
		}
		if a.ID != self {
			first = append(first, a)
		}
	}
	return c, first, nil
}

func validName(s string) bool {
	if s == "" || len(s) > MaxName || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
