package tcp

import (
	"syscall"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sys/unix"
)

// near and distant are congestion controls, the best first. A process without
// privileges may take those of net.ipv4.tcp_allowed_congestion_control.
//
// Between near machines next to nothing is lost, and the pacing and probing of bbr cost
// up to half of the throughput. Across a distance bbr fills links that lose packets at
// random, which the others take for congestion.
var (
	near    = []string{"reno", "cubic"}
	distant = []string{"bbr", "cubic"}
)

// far is the round trip from which a connection is distant. A handshake measures it.
const far = 5 * time.Millisecond

// unsent bounds in bytes what the kernel takes of a distant connection beyond what is
// in flight. Heartbeats wait behind it.
const unsent = 256 << 10

// tuneLink chooses by the round trip of the connection's handshake.
func tuneLink(c manet.Conn) {
	control(c, func(fd int) {
		choices := near
		if roundTrip(fd) >= far {
			choices = distant
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		}
		for _, name := range choices {
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
				return
			}
		}
	})
}

// roundTrip is what the kernel has measured; zero if it does not say.
func roundTrip(fd int) time.Duration {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return time.Duration(info.Rtt) * time.Microsecond
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
