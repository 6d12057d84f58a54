package tcp_test

import (
	"context"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"

	"peermesh/node/internal/tcp"
)

// Two hosts with the transport and its batches.
func Example() {
	a, b := exampleHost(), exampleHost()
	defer a.Close()
	defer b.Close()
	b.SetStreamHandler("/example/shout", func(s network.Stream) {
		defer s.Close()
		fmt.Fprint(s, "hello over TCP")
	})
	ctx := context.Background()
	if err := a.Connect(ctx, peer.AddrInfo{ID: b.ID(), Addrs: b.Addrs()}); err != nil {
		panic(err)
	}
	s, err := a.NewStream(ctx, b.ID(), "/example/shout")
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(s)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", text)
	// Output: hello over TCP
}

func exampleHost() host.Host {
	h, err := libp2p.New(
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.Transport(tcp.New),
		libp2p.Muxer(yamux.ID, tcp.Batch(yamux.DefaultTransport)),
		libp2p.DisableRelay(), libp2p.DisableMetrics(),
	)
	if err != nil {
		panic(err)
	}
	return h
}
