package testnet

import "context"

// Leave takes a rank out of the world as a program does that has done its part:
// mesh.Leave, and then its node closes.
func (n *Net) Leave(ctx context.Context, rank int) error {
	m := n.members[rank].now()
	if err := m.mesh.Leave(ctx); err != nil {
		return err
	}
	return m.node.Close()
}
