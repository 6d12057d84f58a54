package node_test

import (
	"context"
	"fmt"
	"io"

	"peermesh/node"
)

// Two nodes of one process: one greets whoever opens a stream.
func Example() {
	ctx := context.Background()
	loopback := node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	server, err := node.Start(ctx, loopback)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	_, err = server.Handle(ctx, "/greet/1", func(s *node.Stream) {
		fmt.Fprint(s, "hello, peer")
		s.Close()
	})
	if err != nil {
		panic(err)
	}

	client, err := node.Start(ctx, loopback)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	addr, err := node.ParseAddr(server.Addrs()[0].String()) // what the server would print
	if err != nil {
		panic(err)
	}
	if err := client.Connect(ctx, addr); err != nil {
		panic(err)
	}
	s, err := client.Open(ctx, addr.ID, "/greet/1")
	if err != nil {
		panic(err)
	}
	if err := s.CloseWrite(); err != nil {
		panic(err)
	}
	text, err := io.ReadAll(s)
	s.Close()
	fmt.Println(string(text), err)
	// Output: hello, peer <nil>
}
