package tcp

import (
	"syscall"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sys/unix"
)

// Congestion controls, the best first. A process without privileges may take those of
// net.ipv4.tcp_allowed_congestion_control.
//
// Between near machines next to nothing is lost, and the pacing and probing of bbr cost
// up to half of the throughput. Across a distance too: every ten seconds bbr lets a
// connection rest for 200 ms, for which a whole ring waits, while cubic keeps a queue and
// the link full. But what is lost on the way is congestion to cubic, and not to bbr.
var (
	near    = []string{"reno", "cubic"}
	distant = []string{"cubic"}
	lossy   = []string{"bbr"}
)

// far is the round trip from which a connection is distant. A handshake measures it.
const far = 5 * time.Millisecond

// unsent bounds in bytes what the kernel takes of a distant connection beyond what is
// in flight. Heartbeats wait behind it.
const unsent = 256 << 10

// tuneLink chooses by the round trip of the connection's handshake.
func tuneLink(c manet.Conn) (p *pilot) {
	control(c, func(fd int) {
		if roundTrip(fd) < far {
			congestion(fd, near)
			return
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		congestion(fd, distant)
		p = newPilot(c)
	})
	return p
}

// newPilot watches a connection by its descriptor, for as long as that is open.
func newPilot(c manet.Conn) *pilot {
	return &pilot{
		look: func() (s sample, ok bool) {
			control(c, func(fd int) { s, ok = sampleOf(fd) })
			return s, ok
		},
		turn: func() { control(c, func(fd int) { congestion(fd, lossy) }) },
	}
}

// congestion sets the first of the controls that the process may take.
func congestion(fd int, choices []string) {
	for _, name := range choices {
		if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
			return
		}
	}
}

// sampleOf asks the kernel how a connection fares.
func sampleOf(fd int) (sample, bool) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return sample{}, false
	}
	return sample{
		sent: info.Data_segs_out, again: info.Total_retrans,
		rtt: time.Duration(info.Rtt) * time.Microsecond, least: time.Duration(info.Min_rtt) * time.Microsecond,
	}, true
}

// roundTrip is what the kernel has measured; zero if it does not say.
func roundTrip(fd int) time.Duration {
	s, _ := sampleOf(fd)
	return s.rtt
}

// control runs f on a connection's descriptor, if it has one.
func control(c manet.Conn, f func(fd int)) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // fails on a closed connection only
	}
}
