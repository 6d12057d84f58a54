//go:build linux

package node_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"peermesh/mesh"
	"peermesh/node"
)

const (
	// natForm asks for TestNAT: "short" for a hole alone, "full" for all.
	natForm    = "PEERMESH_NAT"
	natRole    = "PEERMESH_NAT_ROLE"
	natRelays  = "PEERMESH_NAT_RELAYS"
	natTimeout = 90 * time.Second
)

// TestNATPeer is one of the processes of TestNAT; by itself it does nothing.
func TestNATPeer(t *testing.T) {
	role := os.Getenv(natRole)
	if role == "" {
		t.Skip("is started by TestNAT")
	}
	ctx, cancel := context.WithTimeout(t.Context(), natTimeout)
	defer cancel()
	c := node.Config{Transports: []string{node.TCP, node.QUIC}, Listen: []string{"/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic-v1"}, Secret: []byte("sixteen and more bytes")}
	if role == "relay" {
		c.Relay = true
	} else {
		c.NAT, c.Relays = true, strings.Fields(os.Getenv(natRelays))
	}
	n, err := node.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	stop, err := n.Handle(ctx, "/echo", func(s *node.Stream) {
		if _, err := io.Copy(s, s); err == nil {
			s.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, a := range n.Addrs() {
		fmt.Println("address", a)
	}
	m, err := mesh.Join(ctx, n, mesh.Config{World: 3, Bootstrap: c.Relays})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fmt.Println("joined")
	w, err := m.World(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range w.Size() {
		if rank == w.Rank() {
			continue
		}
		way := "direct"
		if n.Relayed(w.Peer(rank)) {
			way = "relayed"
		}
		if err := talk(ctx, n, w, rank); err != nil {
			t.Fatal(err)
		}
		fmt.Println("link", way)
	}
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin) // until the test has heard of all
}

// talk sends more than libp2p's relays would let through, and gets it back.
func talk(ctx context.Context, n *node.Node, w *mesh.World, rank int) error {
	const size = 1 << 20
	s, err := n.Open(ctx, w.Peer(rank), "/echo")
	if err != nil {
		return err
	}
	defer s.Close()
	go func() {
		s.Write(make([]byte, size))
		s.CloseWrite()
	}()
	if got, err := io.Copy(io.Discard, s); err != nil || got != size {
		return fmt.Errorf("%d of %d bytes came back: %w", got, size, err)
	}
	return nil
}

// A lab is network namespaces: two homes, each behind a NAT, and the internet
// between them with the relay in it.
//
//	home1 10.0.1.2 — nat1 5.0.0.2 — internet 5.0.0.1 — nat2 5.0.0.3 — home2 10.0.2.2
type lab struct {
	t      *testing.T
	prefix string
}

var labs atomic.Int32

func newLab(t *testing.T) *lab {
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s, for network namespaces behind a NAT", tool)
		}
	}
	l := &lab{t, fmt.Sprintf("pm%d-%d-", os.Getpid(), labs.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", l.prefix+"net").CombinedOutput(); err != nil {
		t.Skipf("cannot make a network namespace: %v: %s", err, out)
	}
	l.dropAtEnd("net")
	l.in("net", "ip link add name road type bridge", "ip addr add 5.0.0.1/24 dev road", "ip link set road up", "ip link set lo up")
	for i := 1; i <= 2; i++ {
		nat, home := fmt.Sprintf("nat%d", i), fmt.Sprintf("home%d", i)
		for _, name := range []string{nat, home} {
			l.run("ip", "netns", "add", l.prefix+name)
			l.dropAtEnd(name)
		}
		l.in("net", fmt.Sprintf("ip link add to%d type veth peer name wan netns %s", i, l.prefix+nat),
			fmt.Sprintf("ip link set to%d master road up", i))
		l.in(home, "ip link add lan type veth peer name lan netns "+l.prefix+nat,
			fmt.Sprintf("ip addr add 10.0.%d.2/24 dev lan", i), "ip link set lan up", "ip link set lo up",
			fmt.Sprintf("ip route add default via 10.0.%d.1", i))
		l.in(nat, fmt.Sprintf("ip addr add 10.0.%d.1/24 dev lan", i), "ip link set lan up",
			fmt.Sprintf("ip addr add 5.0.0.%d/24 dev wan", i+1), "ip link set wan up",
			"sysctl -q -w net.ipv4.ip_forward=1",
			"nft add table ip n", "nft add chain ip n post { type nat hook postrouting priority 100 ; }",
			"nft add rule ip n post oifname wan masquerade",
			// Nobody comes in unasked, not even to the NAT itself.
			"nft add chain ip n in { type filter hook input priority 0 ; }",
			"nft add rule ip n in iifname wan ct state new drop",
			"nft add chain ip n through { type filter hook forward priority 0 ; }",
			"nft add rule ip n through iifname wan ct state new drop")
	}
	return l
}

// in runs commands in a namespace.
func (l *lab) in(name string, commands ...string) {
	l.t.Helper()
	for _, c := range commands {
		l.run("ip", append([]string{"netns", "exec", l.prefix + name}, strings.Fields(c)...)...)
	}
}

func (l *lab) run(command string, args ...string) {
	l.t.Helper()
	if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s %s: %v: %s", command, strings.Join(args, " "), err, out)
	}
}

func (l *lab) dropAtEnd(name string) {
	l.t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", l.prefix+name).CombinedOutput(); err != nil {
			l.t.Errorf("%v: %s", err, out)
		}
	})
}

// start runs a peer and yields the lines that it prints.
func (l *lab) start(name, role string, relays ...string) <-chan string {
	l.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", l.prefix+name, os.Args[0], "-test.run", "^TestNATPeer$", "-test.timeout", natTimeout.String())
	cmd.Env = append(os.Environ(), natRole+"="+role, natRelays+"="+strings.Join(relays, " "))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
	}()
	l.t.Cleanup(func() {
		stdin.Close()
		for line := range lines {
			l.t.Log(name, line)
		}
		if err := cmd.Wait(); err != nil {
			l.t.Errorf("%s: %v", name, err)
		}
	})
	return lines
}

// collect returns what a peer prints with a prefix, up to the end line.
func (l *lab) collect(name string, lines <-chan string, prefix, end string) []string {
	l.t.Helper()
	var found []string
	for line := range lines {
		l.t.Log(name, line)
		if line == end {
			return found
		}
		if s, ok := strings.CutPrefix(line, prefix+" "); ok {
			found = append(found, s)
		}
	}
	l.t.Fatalf("%s ended early", name)
	return nil
}

// world forms one and returns how each home reaches its two peers.
func (l *lab) world() map[string]int {
	relay := l.start("net", "relay")
	var at []string
	for _, a := range l.collect("relay", relay, "address", "joined") {
		if strings.HasPrefix(a, "/ip4/5.") {
			at = append(at, a)
		}
	}
	ways := map[string]int{}
	one, two := l.start("home1", "peer", at...), l.start("home2", "peer", at...)
	for name, lines := range map[string]<-chan string{"home1": one, "home2": two} {
		for _, way := range l.collect(name, lines, "link", "done") {
			ways[way]++
		}
	}
	l.collect("relay", relay, "", "done")
	return ways
}

// Two peers behind two NATs form a world through a third, and find a direct way
// where the NATs let them.
func TestNAT(t *testing.T) {
	form := os.Getenv(natForm)
	if form == "" {
		t.Skipf("needs %s=short or full", natForm)
	}
	t.Run("hole", func(t *testing.T) {
		t.Parallel()
		if ways := newLab(t).world(); ways["direct"] != 4 {
			t.Errorf("%v, want all direct", ways)
		}
	})
	t.Run("no hole", func(t *testing.T) {
		if form == "short" {
			t.Skip("not in the short form")
		}
		t.Parallel()
		l := newLab(t)
		for _, nat := range []string{"nat1", "nat2"} { // the two NATs drop what they hear of each other
			l.in(nat, "nft add chain ip n cut { type filter hook prerouting priority -300 ; }",
				"nft add rule ip n cut iifname wan ip saddr 5.0.0.2-5.0.0.3 drop")
		}
		if ways := l.world(); ways["direct"] != 2 || ways["relayed"] != 2 {
			t.Errorf("%v, want two direct, to the relay, and two relayed", ways)
		}
	})
}
