package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"

	"peermesh/node/internal/shm"
)

// Of all that went wrong, a person reads what says most.
func TestDialErrorTells(t *testing.T) {
	at := func(addr string, err error) swarm.TransportError {
		return swarm.TransportError{Address: multiaddr.StringCast(addr), Cause: err}
	}
	refusal := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	for _, x := range []struct {
		want string
		all  []swarm.TransportError
	}{
		{"connection refused", []swarm.TransportError{at("/unix/x/y", fs.ErrNotExist), at("/ip4/127.0.0.1/tcp/1", refusal)}},
		{"connection refused", []swarm.TransportError{at("/ip4/127.0.0.1/tcp/1", fs.ErrClosed), at("/ip4/192.0.2.1/tcp/1", refusal), at("/unix/x/y", fs.ErrNotExist)}},
		{"no process of this machine listens there any more", []swarm.TransportError{at("/unix/x/y", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENOENT)})}},
		{"no process of this machine listens there any more", []swarm.TransportError{at("/ip4/192.0.2.1/udp/1/quic-v1", swarm.ErrNoTransport), at("/unix/x/y", refusal)}},
		{"no answer in time", []swarm.TransportError{at("/unix/x/y", fs.ErrNotExist), at("/ip4/192.0.2.1/tcp/1", context.DeadlineExceeded)}},
		{"not the same secret", []swarm.TransportError{at("/unix/x/y", &refusalError), at("/ip4/192.0.2.1/tcp/1", refusal)}},
		{"no address that this node can dial", []swarm.TransportError{at("/ip4/192.0.2.1/tcp/1", swarm.ErrNoTransport)}},
	} {
		err := dialError(mustID(t, someID), fmt.Errorf("failed: %w", &swarm.DialError{DialErrors: x.all, Cause: swarm.ErrNoGoodAddresses}))
		var dial *DialError
		if !errors.As(err, &dial) || dial.Reason() != x.want {
			t.Errorf("%v: %v, want %s", x.all, err, x.want)
		}
	}
}

var refusalError = refusal{ErrSecret, "not the same secret"}

// A peer of this machine that is dead is said to be so, also if only its memory was
// known.
func TestDialErrorOfTheDead(t *testing.T) {
	if err := shm.Available(); err != nil {
		t.Skip(err)
	}
	n, other := start(t, Config{}), start(t, Config{})
	all := other.host.Addrs()
	where := info(t, other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		where.Addrs = append(where.Addrs[:0:0], a)
		n.host.Peerstore().ClearAddrs(where.ID)
		err := n.Connect(t.Context(), where)
		want := "connection refused"
		if isLocal(a) {
			want = "no process of this machine listens there any more"
		}
		var dial *DialError
		if !errors.As(err, &dial) || dial.Reason() != want {
			t.Errorf("%s: %v, want %s", a, err, want)
		}
	}
}
