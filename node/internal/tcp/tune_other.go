//go:build !linux

package tcp

import manet "github.com/multiformats/go-multiaddr/net"

// tuneLink does nothing: congestion control is the system's choice.
func tuneLink(manet.Conn) *pilot { return nil }
