//go:build !linux

package tcp

import (
	"time"

	manet "github.com/multiformats/go-multiaddr/net"

	"peermesh/node/internal/mux"
)

// tuneSystem does nothing: the congestion control is the system's choice.
func tuneSystem(manet.Conn) {}

// roundTrip is unknown, and so a connection gets no stripes of ours.
func roundTrip(*mux.Conn) time.Duration { return 0 }
