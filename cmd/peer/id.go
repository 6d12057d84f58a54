package main

import (
	"fmt"

	"peermesh/node"
)

// An idCmd prints the peer ID of an identity file, which is what others write
// after /p2p/ in this peer's multiaddr.
type idCmd struct {
	Identity string `required:"" placeholder:"FILE" help:"Private key, made if absent. (A peer that is started without one has another ID each time.)"`
}

// Run starts a node for a moment, which reads or makes the key by its own rules.
func (i *idCmd) Run(p *process) error {
	n, err := node.Start(p.ctx, node.Config{Identity: i.Identity, Listen: loopback("tcp")})
	if err != nil {
		return usagef("%w", err)
	}
	_, err = fmt.Fprintln(p.stdout, n.ID())
	if closed := n.Close(); err == nil {
		err = closed
	}
	return err
}
