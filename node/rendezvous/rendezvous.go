package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"peermesh/node"

	"github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
)

var logger = log.Logger("rendezvous")

const (
	// Those who look again and again do so soon at first, and then ever less often.
	firstPause, lastPause = 100 * time.Millisecond, 5 * time.Second
	// dialPatience is how long one address may take to answer.
	dialPatience = 3 * time.Second
)

// A Search is who looks for whom.
type Search struct {
	Node *node.Node
	Mesh string // peers of another mesh are not looked for, where one can tell

	// Found is told of each peer, perhaps more than once. It returns soon.
	Found func(peer.AddrInfo)
	// Trouble is told why nobody is found yet, and nil when that is over. Nil: nobody
	// wants to know.
	Trouble func(error)
}

func (s Search) trouble(err error) {
	if s.Trouble != nil {
		s.Trouble(err)
	}
}

// A Finder is one way to find the peers of a mesh.
type Finder interface {
	// Find looks for peers until there is nothing more to find or ctx ends, which is
	// no error. An error is one that does not mend itself.
	Find(ctx context.Context, s Search) error
	// String is the form that the finder came from, for people.
	String() string
}

// Config is what finders need besides their form.
type Config struct {
	// Pins is the file in which the ID behind each tcp://host:port is kept, made if
	// absent; best beside the identity. Empty: the next process will trust anew.
	Pins string
	// Resolver resolves dns and dnsaddr. Nil: the system's.
	Resolver *madns.Resolver
	// DHT holds multiaddrs with /p2p/ID of peers by whom a DHT is entered. Empty: those of
	// the public one.
	DHT []string
}

// Is reports whether a bootstrap address is a form for a rendezvous, well written or
// not, and no multiaddr with an ID.
func Is(form string) bool {
	if strings.HasPrefix(form, "/dns") {
		return !strings.Contains(form, "/p2p/")
	}
	return form == lanForm || form == dhtForm || strings.HasPrefix(form, fileScheme) || strings.HasPrefix(form, tcpScheme)
}

const (
	fileScheme = "file://"
	tcpScheme  = "tcp://"
	lanForm    = "lan"
	dhtForm    = "dht"
)

// byDHT makes the finder of the form dht; nil in a program without one.
var byDHT func(Config) (Finder, error)

// ProvideDHT has Parse know the form dht. It is for package dht alone, which calls it as
// it is initialised: not every program is to have its 4 MB.
func ProvideDHT(finder func(Config) (Finder, error)) { byDHT = finder }

// Parse reads one of the forms that the package's text lists.
func Parse(form string, c Config) (Finder, error) {
	if c.Resolver == nil {
		c.Resolver = madns.DefaultResolver
	}
	var f Finder
	err := errors.New("want file:///path, tcp://host:port, /dns4/host/tcp/port, /dnsaddr/host, lan or dht")
	switch {
	case form == lanForm:
		return lan{}, nil
	case form == dhtForm && byDHT == nil:
		err = errors.New(`this program has no DHT: build it with import _ "peermesh/node/rendezvous/dht"`)
	case form == dhtForm:
		f, err = byDHT(c)
	case strings.HasPrefix(form, fileScheme):
		f, err = parseFile(form)
	case strings.HasPrefix(form, tcpScheme):
		var at multiaddr.Multiaddr
		if at, err = parseTCP(form); err == nil {
			f = &named{form: form, at: at, config: c}
		}
	case strings.HasPrefix(form, "/dns"):
		var at multiaddr.Multiaddr
		if at, err = multiaddr.NewMultiaddr(form); err == nil {
			f = &named{form: form, at: at, config: c}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %q: %w", form, err)
	}
	return f, nil
}

// parseTCP is the multiaddr of tcp://host:port, whose host is a name or an IP address.
func parseTCP(form string) (multiaddr.Multiaddr, error) {
	u, err := url.Parse(form)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("want tcp://host:port, such as tcp://192.0.2.7:29500 or tcp://[2001:db8::7]:29500")
	}
	kind, host, zone := "dns", u.Hostname(), ""
	ip, _ := netip.ParseAddr(host) // neither kind of address, if that is a name
	switch {
	case ip.Is4() || ip.Is4In6():
		kind, host = "ip4", ip.Unmap().String()
	case ip.Is6():
		kind, host = "ip6", ip.WithZone("").String()
		if ip.Zone() != "" {
			zone = "/ip6zone/" + ip.Zone()
		}
	}
	return multiaddr.NewMultiaddr(fmt.Sprintf("%s/%s/%s/tcp/%s", zone, kind, host, u.Port()))
}

// again calls try at growing intervals until it is done, fails or ctx ends.
func again(ctx context.Context, try func() (done bool, err error)) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
