package node

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// listening lists the local addresses, as the kernel writes them, at which this
// process takes what comes: TCP in state LISTEN, UDP that is not connected.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	ours, found := ourSockets(t), map[string]bool{}
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
	return found
}

// A node listens at the addresses that it was given, and at no other: neither
// when it starts, nor once it dials.
func TestListensWhereAsked(t *testing.T) {
	before := listening(t)
	fresh := func() (found []string) {
		for at := range listening(t) {
			if !before[at] {
				found = append(found, at)
			}
		}
		return found
	}
	c := Config{Transports: []string{TCP, QUIC}, Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}}
	a, b := start(t, c), start(t, c)
	want := map[string]bool{}
	for _, n := range []*Node{a, b} {
		for _, at := range n.Addrs() {
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
