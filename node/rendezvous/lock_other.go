//go:build !unix

package rendezvous

import (
	"context"
	"errors"
)

// lock has no fcntl here.
func lock(context.Context, string) (func(), error) {
	return nil, errors.New("files are no meeting place on this system: give tcp://host:port, or a multiaddr")
}
