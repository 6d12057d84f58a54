package tcp

import (
	"net"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
)

// keepAlive has the kernel notice a machine that has gone without a word. Members of a
// mesh notice sooner, by heartbeats.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}

// tune sets a connection's options. None of them is needed for it to work, so none
// that the system refuses matters.
func tune(c manet.Conn) {
	raw, ok := c.(interface {
		SetNoDelay(bool) error
		SetKeepAliveConfig(net.KeepAliveConfig) error
	})
	if !ok {
		return
	}
	_ = raw.SetNoDelay(true)
	_ = raw.SetKeepAliveConfig(keepAlive)
	tuneSystem(c)
}
