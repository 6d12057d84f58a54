package node

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// hostileTime is how long TestHostileSlowdown measures, such as 20s; unset: not.
	hostileTime = "PEERMESH_HOSTILE"
	// hostileAt makes a process of TestHostileAttacker: the address to attack.
	hostileAt = "PEERMESH_HOSTILE_AT"
)

// TestHostileAttacker is the process that TestHostileSlowdown starts; by itself it
// does nothing.
func TestHostileAttacker(t *testing.T) {
	address := os.Getenv(hostileAt)
	if address == "" {
		t.Skip("is started by TestHostileSlowdown")
	}
	stop := attack("tcp", address, 100)
	defer stop()
	fmt.Println("attacking")
	bufio.NewReader(os.Stdin).ReadByte() // until the test lets go of us
}

// A hundred hostile connections at once, from another process that yields the
// processor, do not slow down two members by more than a tenth. A few calm and a few
// attacked seconds take turns, and the median second counts.
func TestHostileSlowdown(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv(hostileTime))
	if err != nil {
		t.Skipf("needs %s, such as 20s, and a machine that does nothing else", hostileTime)
	}
	const size, piece = 64 << 10, time.Second
	for name, secret := range map[string][]byte{"open": nil, "private": ours} {
		t.Run(name, func(t *testing.T) {
			c := Config{Transports: []string{TCP}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Secret: secret, Peers: 8}
			a, _, s := echoing(t, c)
			_, address, err := manet.DialArgs(info(t, a).Addrs[0])
			if err != nil {
				t.Fatal(err)
			}
			many := func() (n int) {
				for begin := time.Now(); time.Since(begin) < piece; n++ {
					rounds(t, s, 1, size)
				}
				return n
			}
			many()
			var calm, attacked []int
			for begin := time.Now(); time.Since(begin) < length; {
				calm = append(calm, many(), many(), many())
				end := attackFrom(t, address)
				many() // while they all come at once
				attacked = append(attacked, many(), many(), many())
				end()
			}
			slices.Sort(calm)
			slices.Sort(attacked)
			ratio := float64(calm[len(calm)/2]) / float64(attacked[len(attacked)/2])
			fmt.Printf("%s: attacked, a round trip takes %.3f times as long (%d and %d a second, of %d seconds each)\n",
				name, ratio, calm[len(calm)/2], attacked[len(attacked)/2], len(calm))
			if ratio > 1.1 {
				t.Errorf("slowed down by %.0f %%", 100*(ratio-1))
			}
		})
	}
}

// attackFrom attacks from a process of its own, until stop is called.
func attackFrom(t *testing.T, address string) (stop func()) {
	t.Helper()
	cmd := exec.Command("nice", "-n", "19", os.Args[0], "-test.run", "^TestHostileAttacker$")
	cmd.Env = append(os.Environ(), hostileAt+"="+address)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); err != nil || line != "attacking\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		stdin.Close()
		lines.WriteTo(os.Stderr)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
