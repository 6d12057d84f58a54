package tcp

import (
	"testing"

	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sys/unix"
)

// Both ends of a near connection are tuned.
func TestTune(t *testing.T) {
	l, err := manet.Listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := manet.Dial(l.Multiaddr())
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for name, c := range map[string]manet.Conn{"dialled": dialled, "accepted": accepted} {
		tune(c)
		control(c, func(fd int) {
			got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			if err != nil || got != near[0] { // which every kernel allows to everyone
				t.Errorf("%s: congestion control %q, %v", name, got, err)
			}
			for option, level := range map[int]int{unix.TCP_NODELAY: unix.IPPROTO_TCP, unix.SO_KEEPALIVE: unix.SOL_SOCKET} {
				if on, err := unix.GetsockoptInt(fd, level, option); on == 0 || err != nil {
					t.Errorf("%s: option %d is %d, %v", name, option, on, err)
				}
			}
			if roundTrip(fd) <= 0 {
				t.Errorf("%s: no round trip known", name)
			}
		})
	}
}

// What has no descriptor is left as it is.
func TestTuneElsewhere(t *testing.T) {
	tune(&fake{})
	control(&fake{}, func(int) { t.Error("a descriptor out of nowhere") })
	if d := roundTrip(-1); d != 0 {
		t.Errorf("no connection has a round trip of %s", d)
	}
}
