package mesh

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
	"peermesh/node/rendezvous"
)

// Bounds and defaults of a Config.
const (
	// MaxWorld bounds the members of a world: a proposal has the announcements of all.
	MaxWorld = 1024
	// MaxName bounds a mesh's name in bytes.
	MaxName = 64

	defaultName = "default"
	minSilence  = 100 * time.Millisecond
	defaultWait = 5 * time.Minute
)

// A Quorum is a rule for who may form the next world.
type Quorum uint8

const (
	// Majority wants more than half of the world before, or exactly half with its
	// rank 0, so that two parts of a mesh never both go on. Only members that
	// remember that world count: see Config.State.
	Majority Quorum = iota
	// Any wants Config.Min members and no more. Parts of a mesh that cannot reach
	// each other may then both go on, and drift apart.
	Any
)

func (q Quorum) String() string {
	switch q {
	case Majority:
		return "majority"
	case Any:
		return "any"
	}
	return fmt.Sprintf("Quorum(%d)", uint8(q))
}

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
	//
	// It may also hold forms of package rendezvous, which all peers are given alike:
	// file:///path, tcp://host:port, a dns or dnsaddr multiaddr without an ID, lan, dht.
	Bootstrap []string

	// DHT holds multiaddrs with /p2p/ID of peers that serve the DHT of the form dht.
	// Empty: the public one of IPFS.
	DHT []string

	// Pins is the file in which the ID is kept that was found behind each
	// tcp://host:port, best beside the identity: see rendezvous.Config.
	Pins string

	// Finders are further ways to find bootstrap peers.
	Finders []rendezvous.Finder

	// Min is the number of ranks that a later world can live with, from 1 to
	// World. Zero: World. The first world always has all World members.
	Min int

	// Quorum says which survivors may go on without the rest. Give every member
	// the same.
	Quorum Quorum

	// State is the path of a file in which this peer remembers the last world, and
	// what it has promised, so that it keeps its say in the next one when its
	// process starts again with the same identity. It is made if absent, and
	// removed by Leave. Empty: a peer that starts again is a newcomer.
	State string

	// Carries says that the program gives whoever is let into a world, or was away, what
	// was done before, as trainer.Carry does, and calls [World.Carried] when this peer has
	// it. Until then a peer does not count as one from whom the others could have it, so
	// that nothing is lost if all others die in that moment; one whose program never calls
	// it never does. The program calls [World.Advanced] when all ranks have gone a step
	// beyond that. Until then, if all members of a world start again and nobody has what
	// was done any more, they wait for those who were cut off in the world before and may
	// still have it. Without Carries every member counts, and a world is beyond the one
	// before, from the moment that it stands.
	Carries bool

	// Terms is what else all members must have alike, one thing each, as the flags of a
	// program: who comes with others is refused, and told which. At most MaxTerms bytes
	// of printable text.
	Terms []string

	// Silence is how long nothing may be heard of a member before it counts as
	// dead. Zero: as long as the link to it makes it likely, which on a near
	// network is under 2 s. Give every member the same.
	Silence time.Duration

	// Clock is the time of day by which announcements are dated and expire; nil: the
	// machine's. Whether a peer lives is never told by it. Tests give peers clocks that
	// are wrong.
	Clock func() time.Time

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
	if c.Min == 0 {
		c.Min = c.World
	}
	if c.Min < 1 || c.Min > c.World {
		return c, nil, fmt.Errorf("mesh: a world of at least %d: want 1 to %d ranks", c.Min, c.World)
	}
	if c.Quorum > Any {
		return c, nil, fmt.Errorf("mesh: unknown quorum %s", c.Quorum)
	}
	if !validTerms(c.Terms) {
		return c, nil, fmt.Errorf("mesh: terms %q: want at most %d bytes of printable text", c.Terms, MaxTerms)
	}
	if c.Silence != 0 && c.Silence < minSilence {
		return c, nil, fmt.Errorf("mesh: silence of %s: want at least %s", c.Silence, minSilence)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	if c.Wait < 0 {
		return c, nil, fmt.Errorf("mesh: cannot wait %s", c.Wait)
	}
	var first []peer.AddrInfo
	for _, s := range c.Bootstrap {
		if rendezvous.Is(s) {
			continue
		}
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
