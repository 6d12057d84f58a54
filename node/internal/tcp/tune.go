package tcp

import (
	"net"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
)

// keepAlive has the kernel notice, within 35 seconds, a machine that has gone without a
// word. Members of a mesh notice sooner, by heartbeats.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}

// tune sets a connection's options. It works without any of them, so none that the
// system refuses is an error.
//
// libp2p's own transport also has connections reset when they close (a linger of zero),
// to be able to dial again from the same port. This one dials from any port, and so
// what was written before a close still arrives.
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
	tuneLink(c)
}
