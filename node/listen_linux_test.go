package node

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multiformats/go-multiaddr"

	"peermesh/node/internal/shm"
)

// ourSockets are the inodes of this process's sockets.
func ourSockets(t *testing.T) map[string]bool {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil {
			continue // closed meanwhile
		}
		if s, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(s, "]")] = true
		}
	}
	return inodes
}

// sockets are addresses at which somebody listens.
type sockets map[string]bool

// listening lists the local addresses, as the kernel writes them, at which this
// process takes what comes: TCP in state LISTEN, UDP that is not connected, Unix
// sockets that accept.
func listening(t *testing.T) sockets {
	t.Helper()
	ours, found := ourSockets(t), sockets{}
	for table, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		f, err := os.Open("/proc/self/net/" + table)
		if err != nil {
			continue // without IPv6
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if w := strings.Fields(s.Text()); len(w) > 9 && w[3] == state && ours[w[9]] {
				found[table+" "+w[1]] = true
			}
		}
	}
	f, err := os.Open("/proc/self/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const accepts = "00010000" // __SO_ACCEPTCON
	for s := bufio.NewScanner(f); s.Scan(); {
		if w := strings.Fields(s.Text()); len(w) > 6 && w[3] == accepts && ours[w[6]] {
			found.add(strings.Join(w[7:], " "))
		}
	}
	return found
}

// add counts a Unix socket by its directory: its name is another than the one that it
// was bound with, which is what the kernel goes on to show.
func (c sockets) add(path string) {
	dir := filepath.Base(filepath.Dir(path))
	for i := 1; ; i++ {
		if at := fmt.Sprintf("unix %s #%d", dir, i); !c[at] {
			c[at] = true
			return
		}
	}
}

// A node listens at the addresses that it was given, and at no other: neither
// when it starts, nor once it dials.
func TestListensWhereAsked(t *testing.T) {
	listen := []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	for name, c := range map[string]Config{
		"network":    {Transports: []string{TCP, QUIC}, Listen: listen},
		"memory too": {Transports: []string{TCP, QUIC, Shm}, Listen: listen},
		"default":    {Listen: listen},
	} {
		t.Run(name, func(t *testing.T) { listensWhereAsked(t, c) })
	}
}

func listensWhereAsked(t *testing.T, c Config) {
	if slices.Contains(c.Transports, Shm) && shm.Available() != nil {
		t.Skip(shm.Available())
	}
	before := listening(t)
	fresh := func() (found []string) {
		for at := range listening(t) {
			if !before[at] {
				found = append(found, at)
			}
		}
		return found
	}
	a, b := start(t, c), start(t, c)
	want := sockets{}
	for _, n := range []*Node{a, b} {
		for _, at := range n.host.Addrs() {
			if path, err := at.ValueForProtocol(multiaddr.P_UNIX); err == nil {
				want.add(path)
			}
			for table, proto := range map[string]string{"tcp": "tcp", "udp": "udp"} {
				var port int
				if _, rest, ok := strings.Cut(at.String(), "/"+proto+"/"); ok {
					fmt.Sscanf(rest, "%d", &port)
					want[fmt.Sprintf("%s 0100007F:%04X", table, port)] = true
				}
			}
		}
	}
	check := func(when string) {
		found := fresh()
		for _, at := range found {
			if !want[at] {
				t.Errorf("%s: listens at %s", when, at)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%s: %v, want %v", when, found, want)
		}
	}
	check("started")
	if err := meet(t, a, b); err != nil {
		t.Fatal(err)
	}
	check("connected")
}
