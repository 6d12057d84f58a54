package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// DialError says in one line why a peer cannot be reached.
type DialError struct {
	Peer peer.ID
	Addr multiaddr.Multiaddr // the address tried that tells most; nil if there was none
	Err  error
}

func (e *DialError) Error() string {
	if e.Addr == nil {
		return fmt.Sprintf("node: cannot dial %s: %s", e.Peer, e.Reason())
	}
	return fmt.Sprintf("node: cannot dial %s at %s: %s", e.Peer, e.Addr, e.Reason())
}

func (e *DialError) Unwrap() error { return e.Err }

func dialError(p peer.ID, err error) error {
	e := &DialError{Peer: p, Err: refusalOf(err)}
	var dial *swarm.DialError
	if errors.As(err, &dial) && len(dial.DialErrors) > 0 {
		tell := slices.MaxFunc(dial.DialErrors, func(a, b swarm.TransportError) int { return telling(a) - telling(b) })
		if telling(tell) > 0 {
			e.Addr, e.Err = tell.Address, refusalOf(tell.Cause)
		}
	}
	return e
}

// telling orders what happened at a peer's addresses by what it says of the peer. One
// on another machine also announces addresses of its own machine; what happened
// there, which is here, says nothing. That memory is gone says less of a peer on this
// machine than that its port is.
func telling(e swarm.TransportError) int {
	switch {
	case refused(e.Cause):
		return 4
	case errors.Is(e.Cause, swarm.ErrNoTransport), errors.Is(e.Cause, swarm.ErrDialBackoff), errors.Is(e.Cause, context.Canceled):
		return 0 // it was not even tried
	case isLocal(e.Address):
		return 1
	case manet.IsIPLoopback(e.Address):
		return 2
	}
	return 3
}

// Reason is the innermost cause in words, such as "connection refused": the part of
// libp2p's chain of prefixes that a person acts on.
func (e *DialError) Reason() string {
	if e.Addr != nil && isLocal(e.Addr) && (errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, syscall.ECONNREFUSED)) {
		return "no process of this machine listens there any more"
	}
	var no syscall.Errno
	switch err := e.Err; {
	case errors.As(err, &no):
		return no.Error()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, swarm.ErrNoAddresses), errors.Is(err, swarm.ErrNoGoodAddresses):
		return "no address that this node can dial"
	}
	text := e.Err.Error()
	if i := strings.Index(text, "peer id mismatch"); i >= 0 {
		text = text[i:]
	}
	return strings.ReplaceAll(text, "\n", " ")
}
