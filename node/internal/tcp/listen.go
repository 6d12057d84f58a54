package tcp

import (
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"

	"peermesh/node/internal/mux"
)

// wired is a raw listener whose connections are tuned and on a wire.
type wired struct{ transport.GatedMaListener }

func (l *wired) Accept() (manet.Conn, network.ConnManagementScope, error) {
	c, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	tune(c)
	return mux.NewWire(c, nil), scope, nil
}

// listener yields whole connections. Their stripes have joined them by then, and only
// have to be closed along with them.
type listener struct{ transport.Listener }

func (l *listener) Accept() (transport.CapableConn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var m *mux.Conn
		if !c.As(&m) || m.Primary() == nil {
			return c, nil
		}
		m.Primary().Keep(c)
	}
}
