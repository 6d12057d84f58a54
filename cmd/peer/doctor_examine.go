package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"peermesh/gpu"
)

const (
	// wantFiles is how many files a peer of a large world may have open: sockets, and
	// the data's and checkpoints' files; needFiles is below what any peer needs.
	wantFiles, needFiles = 1024, 64
	// wantBuffer is what quic-go asks of the kernel for its sockets, in bytes.
	wantBuffer = 7 << 20
	// wantShm is room for the rings of a few ranks of one machine, in bytes.
	wantShm = 64 << 20
	// leastMTU is the smallest for QUIC's packets (RFC 9000, 14), with IPv6's headers.
	leastMTU = 1280
	// mostSkew is by how much clocks may differ for logs to be compared; from maxSkew
	// on an announcement counts as expired (mesh/SPEC.md).
	mostSkew, maxSkew = time.Second, 15 * time.Minute
)

// vitals are the facts about a machine. Zero is what is not known, and not found fault
// with.
type vitals struct {
	Version   string
	CPUs      int
	Features  []string // of the processor, that arithmetic is faster with
	Vector    bool     // arithmetic knows any for this processor
	Files     uint64   // that a process may have open
	HardFiles uint64   // to which it may raise that by itself
	RecvUDP   int      // the most that a socket may buffer, bytes
	SendUDP   int
	MTUs      map[string]int // of interfaces that are up, loopback apart
	Addrs     []netip.Addr   // of these
	Shm       int64          // free for shared memory, bytes; −1: there is none
	GPUs      gpu.Survey
	Bootstrap *way
}

// A way is how a bootstrap peer was reached.
type way struct {
	ID       string
	Tries    []try
	Round    time.Duration
	Skew     time.Duration // its clock less ours
	Clock    bool          // it has told the time
	Observed netip.Addr    // what it sees us as; invalid: not known
}

// A try is a dial of one address.
type try struct {
	Addr string
	Took time.Duration
	Err  string // empty: it went well
}

// examine finds what is well and what is not.
func examine(v vitals) []finding {
	all := []finding{{fine, "version", v.Version, ""}}
	add := func(f ...finding) { all = append(all, f...) }
	add(v.processor(), v.files())
	add(v.buffers()...)
	add(v.mtus()...)
	add(v.memory())
	add(v.gpus()...)
	add(v.addresses())
	if v.Bootstrap != nil {
		add(v.Bootstrap.reached()...)
		add(v.Bootstrap.clock())
		add(v.nat()...)
	}
	return slices.DeleteFunc(all, func(f finding) bool { return f.What == "" })
}

func (v *vitals) processor() finding {
	f := finding{fine, "processor", fmt.Sprintf("%d cores", v.CPUs), ""}
	switch {
	case len(v.Features) > 0:
		f.Found += " with " + strings.Join(v.Features, ", ")
	case v.Vector:
		f.Level, f.Found, f.Mend = worse, f.Found+" without AVX2: arithmetic is several times slower", "in a virtual machine, pass the host's processor through (qemu: -cpu host)"
	}
	return f
}

func (v *vitals) files() finding {
	f := finding{fine, "open files", fmt.Sprintf("up to %d", v.Files), ""}
	switch {
	case v.Files == 0:
		return finding{}
	case v.Files < needFiles:
		f.Level = fatal
	case v.Files < wantFiles:
		f.Level = worse
	default:
		return f
	}
	if f.Mend = fmt.Sprintf("ulimit -n %d", 4*wantFiles); v.HardFiles < 4*wantFiles {
		f.Mend = fmt.Sprintf("echo '* hard nofile %d' | sudo tee /etc/security/limits.d/peermesh.conf, log in anew, and %s (of a systemd unit: LimitNOFILE=%[1]d)", 4*wantFiles, f.Mend)
	}
	return f
}

func (v *vitals) buffers() (all []finding) {
	for _, b := range []struct {
		name string
		size int
	}{{"net.core.rmem_max", v.RecvUDP}, {"net.core.wmem_max", v.SendUDP}} {
		switch {
		case b.size == 0:
		case b.size < wantBuffer:
			all = append(all, finding{worse, "UDP buffer", fmt.Sprintf("%s is %d, QUIC wants %d: fast links drop packets", b.name, b.size, wantBuffer),
				fmt.Sprintf("sudo sysctl -w %s=%d", b.name, wantBuffer)})
		default:
			all = append(all, finding{fine, "UDP buffer", fmt.Sprintf("%s is %d", b.name, b.size), ""})
		}
	}
	return all
}

func (v *vitals) mtus() (all []finding) {
	for name, mtu := range v.MTUs {
		f := finding{fine, "MTU", fmt.Sprintf("%s has %d", name, mtu), ""}
		if mtu < leastMTU {
			f.Level, f.Mend = worse, fmt.Sprintf("sudo ip link set %s mtu 1500, or use --transport tcp: QUIC needs %d", name, leastMTU)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b finding) int { return strings.Compare(a.Found, b.Found) })
	return all
}

func (v *vitals) memory() finding {
	switch {
	case v.Shm < 0:
		return finding{worse, "shared memory", "none: ranks of this machine go over TCP", "sudo mount -t tmpfs tmpfs /dev/shm; in a container, docker run --ipc=host"}
	case v.Shm == 0:
		return finding{}
	case v.Shm < wantShm:
		return finding{worse, "shared memory", fmt.Sprintf("%d MiB are free in /dev/shm", v.Shm>>20), "sudo mount -o remount,size=1g /dev/shm; in a container, docker run --shm-size=1g"}
	}
	return finding{fine, "shared memory", fmt.Sprintf("%d MiB are free in /dev/shm", v.Shm>>20), ""}
}

// gpus are the devices, and what is amiss with them. A machine without a card and its
// driver is no worse for it.
func (v *vitals) gpus() (all []finding) {
	g := &v.GPUs
	for _, d := range g.Devices {
		all = append(all, finding{fine, "GPU", fmt.Sprintf("%d: %s, capability %s, sums by the %s", d.Ordinal, d.Name, d.Capability, cmp.Or(d.Arithmetic, "host")), ""})
	}
	if len(all) == 0 && g.Module == "" {
		return []finding{{fine, "GPUs", "none: everything runs on the processor", ""}}
	}
	if g.Driver.Version != "" {
		all = append(all, finding{fine, "CUDA", "the driver knows " + g.Driver.Version, ""})
	}
	for _, l := range g.Lacks {
		why, _, _ := strings.Cut(l.Why, "\n")
		all = append(all, finding{worse, "GPU " + l.What, strings.TrimSuffix(why, ":"), cmp.Or(l.Mend, "peer gpu info says more")})
	}
	return all
}

func (v *vitals) addresses() finding {
	if len(v.Addrs) == 0 {
		return finding{worse, "addresses", "only loopback: peers of this machine alone can be met", "ip addr shows the interfaces, sudo ip link set IFACE up starts one"}
	}
	public := false
	var all []string
	for _, a := range v.Addrs {
		public = public || !a.IsPrivate() && !a.IsLinkLocalUnicast()
		all = append(all, a.String())
	}
	if public {
		return finding{fine, "addresses", strings.Join(all, ", "), ""}
	}
	return finding{fine, "addresses", strings.Join(all, ", ") + ": private, for peers of this network",
		"for peers elsewhere: peer --nat --bootstrap ADDR here, with ADDR of a peer --relay that all can reach; or forward a port of the router to this machine"}
}

func (w *way) reached() (all []finding) {
	some := slices.ContainsFunc(w.Tries, func(t try) bool { return t.Err == "" })
	for _, t := range w.Tries {
		switch {
		case t.Err == "":
			all = append(all, finding{fine, "bootstrap", fmt.Sprintf("%s in %v", t.Addr, t.Took.Round(time.Millisecond)), ""})
		case some:
			all = append(all, finding{worse, "bootstrap", fmt.Sprintf("%s cannot be reached: %s", t.Addr, t.Err), "another way is open; if this one is to be, " + letIn(t.Addr) + " there"})
		case strings.Contains(t.Err, "peer id mismatch"):
			all = append(all, finding{fatal, "bootstrap", fmt.Sprintf("%s is another peer: %s", t.Addr, t.Err), "peer id --identity FILE there prints its ID: copy the whole address that it prints now, /p2p/ID included"})
		case strings.Contains(t.Err, "secret"):
			all = append(all, finding{fatal, "bootstrap", fmt.Sprintf("%s: %s", t.Addr, t.Err), "peer doctor --secret FILE, with the file that the peer there has"})
		default:
			all = append(all, finding{fatal, "bootstrap", fmt.Sprintf("%s cannot be reached: %s", t.Addr, t.Err),
				"ss -lntup there lists the ports of peers that wait; if it is among them, the firewall keeps it out: " + letIn(t.Addr)})
		}
	}
	return all
}

// letIn is the command that has a machine's firewall let in what is dialled at an address.
func letIn(addr string) string {
	words := strings.Split(addr, "/")
	for i, word := range words[:len(words)-1] {
		if word == "tcp" || word == "udp" {
			return fmt.Sprintf("sudo ufw allow %s/%s", words[i+1], word)
		}
	}
	return "sudo ufw allow PORT"
}

func (w *way) clock() finding {
	f := finding{fine, "clock", fmt.Sprintf("differs from the bootstrap peer's by %v", w.Skew.Round(time.Millisecond)), ""}
	switch skew := w.Skew.Abs(); {
	case !w.Clock:
		return finding{}
	case skew >= maxSkew:
		f.Level, f.Mend = fatal, "sudo timedatectl set-ntp true, here or there: announcements seem to have expired"
	case skew >= mostSkew+w.Round:
		f.Level, f.Mend = worse, "sudo timedatectl set-ntp true, here or there"
	}
	return f
}

func (v *vitals) nat() []finding {
	seen := v.Bootstrap.Observed
	if !seen.IsValid() || seen.IsLoopback() || slices.Contains(v.Addrs, seen) {
		return nil
	}
	return []finding{{worse, "NAT", fmt.Sprintf("the bootstrap peer sees this machine as %v, which is none of its addresses: others cannot dial it", seen),
		"peer --nat --bootstrap ADDR here and peer --relay there, or forward a port of the router to this machine"}}
}
