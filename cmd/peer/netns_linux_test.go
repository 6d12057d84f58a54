package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// netnsTime is how long TestPartition cuts a network in two; without it, no test here
// makes network namespaces.
const netnsTime = "PEERMESH_NETNS"

// A terrain is machines, each a network namespace with an address of its own, on two
// switches that a cable joins:
//
//	10.77.0.1, 10.77.0.2 … — left — cable — right — … 10.77.0.9
type terrain struct {
	t      *testing.T
	prefix string // of the namespaces' names
}

var terrains atomic.Int32

// newTerrain builds one with some machines on either switch.
func newTerrain(t *testing.T, left, right int) *terrain {
	t.Helper()
	if os.Getenv(netnsTime) == "" {
		t.Skipf("set %s to a time such as 5s, or make netns", netnsTime)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip, for network namespaces")
	}
	n := &terrain{t, fmt.Sprintf("pmt%d-%d-", os.Getpid(), terrains.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", n.prefix+"net").CombinedOutput(); err != nil {
		t.Skipf("cannot make a network namespace: %v: %s", err, out)
	}
	n.dropAtEnd("net")
	n.in("net", "ip link add left type bridge", "ip link add right type bridge", "ip link add cable type veth peer name elbac",
		"ip link set cable master left", "ip link set elbac master right",
		"ip link set left up", "ip link set right up", "ip link set cable up", "ip link set elbac up")
	for i := range left + right {
		side := "left"
		if i >= left {
			side = "right"
		}
		n.machine(i, side)
	}
	return n
}

// machine adds one to a switch. Its route to everywhere else leads nowhere, but makes
// the address the one that peers tell of.
func (n *terrain) machine(i int, side string) {
	n.t.Helper()
	name := strconv.Itoa(i)
	n.run("ip", "netns", "add", n.prefix+name)
	n.dropAtEnd(name)
	n.in("net", fmt.Sprintf("ip link add port%d type veth peer name lan netns %s", i, n.prefix+name),
		fmt.Sprintf("ip link set port%d master %s up", i, side))
	n.in(name, "ip addr add "+n.ip(i)+"/24 dev lan", "ip link set lan up", "ip link set lo up",
		"ip route add default via 10.77.0.254")
}

func (n *terrain) ip(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// cut makes all packets between the two sides vanish, which no machine is told of, and
// heal lets them through again.
func (n *terrain) cut()  { n.in("net", "ip link set cable down") }
func (n *terrain) heal() { n.in("net", "ip link set cable up") }

// in runs commands in a namespace.
func (n *terrain) in(name string, commands ...string) {
	n.t.Helper()
	for _, c := range commands {
		n.run("ip", append([]string{"netns", "exec", n.prefix + name}, strings.Fields(c)...)...)
	}
}

func (n *terrain) run(command string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v: %s", command, strings.Join(args, " "), err, out)
	}
}

func (n *terrain) dropAtEnd(name string) {
	n.t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", n.prefix+name).CombinedOutput(); err != nil {
			n.t.Errorf("%v: %s", err, out)
		}
	})
}

// peer is a command that runs the test binary as peer on a machine. Its process is the
// peer's own, as ip becomes what it runs.
func (n *terrain) peer(i int, args ...string) *exec.Cmd {
	cmd := peerCommand(n.t, args...)
	cmd.Args = append([]string{"ip", "netns", "exec", n.prefix + strconv.Itoa(i)}, cmd.Args...)
	path, err := exec.LookPath("ip")
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Path = path
	return cmd
}

// fleet is peers, one on each machine.
func (n *terrain) fleet(size int, flags ...string) *fleet {
	f := newFleet(n.t, size, flags...)
	f.command = n.peer
	for i := range f.addrs {
		f.addrs[i] = "/ip4/" + n.ip(i) + "/tcp/4001"
	}
	return f
}

// TestTwoMachines trains on two machines with what the README says: the first peer
// waits, and the other is started with the line that it prints.
func TestTwoMachines(t *testing.T) {
	n := newTerrain(t, 1, 1)
	data := writeDigits(t)
	first := watched(t, n.peer(0, "--listen", "/ip4/0.0.0.0/tcp/4001", "--world", "2", "--epochs", "2", "--data", data))
	command := regexp.MustCompile(`(?m)^ +peer (--bootstrap /ip4/10\.77\.0\.1/.*)$`)
	eventually(t, "the command for the other machine", func() bool { return command.MatchString(first.out()) })
	second := watched(t, n.peer(1, append(strings.Fields(command.FindStringSubmatch(first.out())[1]), "--data", data)...))
	for i, s := range []*spawned{first, second} {
		if status := s.wait(t); status != 0 {
			t.Errorf("machine %d: status %d", i, status)
		}
	}
	accuracy := regexp.MustCompile(`(?m)test accuracy [0-9.]+ %.*$`).FindString(first.out() + second.out())
	if accuracy == "" {
		t.Error("no test accuracy is printed")
	}
	t.Log(accuracy)
}

// TestPartition cuts a network in two while a world trains on it, and heals it. One
// part goes on and the other waits, and then all train in one world. However fast that
// is, the training has no end of its own: it is ended when all this has been seen, and
// what it leaves is trained to an end.
func TestPartition(t *testing.T) {
	for _, parts := range [][2]int{{2, 2}, {3, 2}} {
		t.Run(fmt.Sprintf("%d and %d", parts[0], parts[1]), func(t *testing.T) { partition(t, parts[0], parts[1]) })
	}
}

// partition is TestPartition with so many peers on either side.
func partition(t *testing.T, left, right int) {
	const samples = 1024
	size := left + right
	n := newTerrain(t, left, right)
	lasting, err := time.ParseDuration(os.Getenv(netnsTime))
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data", writeSomeDigits(t, samples, 50), "--threads", "1", "--no-dropout", "--transport", "tcp", "--min", "2",
		"--checkpoint", t.TempDir(), "--every", "8"}

	f := n.fleet(size, append(flags, "--epochs", manyEpochs)...)
	f.startAll()
	f.train("at first", time.Time{})
	n.split(f, left, lasting)
	f.train("all together again", time.Now())
	f.interrupt()
	last := f.last()
	f.audit(samples, 1, last)
	f.apart()

	again := n.fleet(size, append(flags, "--resume", "--epochs", strconv.Itoa(last+1))...)
	again.startAll()
	again.finish(2 * soon)
	again.audit(samples, last+1, last+1)
}

// split cuts the network until one part has trained by itself, and for a time at least.
// It heals it, and all peers take a step together again.
func (n *terrain) split(f *fleet, left int, lasting time.Duration) {
	n.t.Helper()
	size := len(f.keys)
	goOn := func(i int) bool { return i < left } // the larger part, or the one with rank 0
	if 2*left == size {
		first := slices.Index(f.ids, slices.Min(f.ids))
		goOn = func(i int) bool { return i < left == (first < left) }
	}
	n.cut()
	cut := time.Now()
	for i := range size {
		if goOn(i) {
			inTime(n.t, soon, fmt.Sprintf("a step of peer %d among its own", i), func() bool {
				return f.has(i, func(e told) bool { return e.Event == "resumed" && e.World < size && e.at.After(cut) })
			})
		}
	}
	inTime(n.t, lasting+soon, "the end of the cut", func() bool { return time.Since(cut) > lasting })
	healed := time.Now()
	n.heal()
	for i := range size {
		inTime(n.t, soon, fmt.Sprintf("a step of peer %d with all others", i), func() bool {
			return f.has(i, func(e told) bool { return e.Event == "resumed" && e.World == size && e.at.After(healed) })
		})
		if !goOn(i) && f.has(i, func(e told) bool { return e.progress() && e.World < size && e.at.After(cut) && e.at.Before(healed) }) {
			n.t.Errorf("peer %d, of the lesser part, has gone on by itself", i)
		}
	}
	n.t.Logf("all together again in %v", time.Since(healed).Round(time.Millisecond))
}
