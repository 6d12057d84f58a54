package tcp

import (
	"syscall"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sys/unix"

	"peermesh/node/internal/mux"
)

// near and distant are congestion controls, the best first. Between near machines a
// packet is hardly ever lost, and bbr's pacing and probing take up to half of the
// throughput. Across a distance bbr fills links that lose packets at random, which the
// others take for congestion.
var (
	near    = []string{"reno", "cubic"}
	distant = []string{"bbr", "cubic"}
)

// unsent bounds what a distant connection has in the kernel beyond what is in flight:
// it is what a heartbeat waits behind.
const unsent = 256 << 10

func tuneSystem(c manet.Conn) {
	control(c, func(fd int) {
		list := distant
		if rtt(fd) < far {
			list = near
		} else {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		}
		for _, name := range list {
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
				return
			}
		}
	})
}

// roundTrip is what the kernel has measured for a connection.
func roundTrip(m *mux.Conn) (d time.Duration) {
	control(m.Wire().Conn, func(fd int) { d = rtt(fd) })
	return d
}

// rtt is a connection's smoothed round trip; after its handshake it is that of the
// handshake.
func rtt(fd int) time.Duration {
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
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
