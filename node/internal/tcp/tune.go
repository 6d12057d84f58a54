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
// As in libp2p's own transport a close resets the connection (a linger of zero): whoever
// is hung up on knows at once, and nothing is left in the kernel for a peer that is gone.
//
// It returns the pilot of a distant connection, and nil for a near one.
func tune(c manet.Conn) *pilot {
	raw, ok := c.(interface {
		SetNoDelay(bool) error
		SetLinger(sec int) error
		SetKeepAliveConfig(net.KeepAliveConfig) error
	})
	if !ok {
		return nil
	}
	_ = raw.SetNoDelay(true)
	_ = raw.SetLinger(0)
	_ = raw.SetKeepAliveConfig(keepAlive)
	return tuneLink(c)
}
