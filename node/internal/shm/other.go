//go:build !linux || !(amd64 || arm64)

package shm

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// RingSize is how many bytes a stream carries ahead of its reader.
const RingSize = 1 << 20

var errUnavailable = errors.New("shm: needs Linux on amd64 or arm64")

// Available is nil if a host can have this transport here, else the reason.
func Available() error { return errUnavailable }

// Address is what to listen on: any free name.
func Address() (multiaddr.Multiaddr, error) { return nil, errUnavailable }

// New fails: see Available.
func New(crypto.PrivKey) (transport.Transport, error) { return nil, errUnavailable }
