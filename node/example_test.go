package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/peer"

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

// A private mesh of two: they share a secret, and one has a list of who may come.
func ExampleConfig_secret() {
	ctx := context.Background()
	start := func(c node.Config) *node.Node {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
		n, err := node.Start(ctx, c)
		if err != nil {
			panic(err)
		}
		return n
	}
	secret := []byte("thirty-two random bytes would do") // or node.ReadSecret
	friend := start(node.Config{Secret: secret})
	defer friend.Close()
	server := start(node.Config{Secret: secret, Allow: []peer.ID{friend.ID()}}) // or node.ReadAllow
	defer server.Close()
	addr, err := node.ParseAddr(server.Addrs()[0].String())
	if err != nil {
		panic(err)
	}

	fmt.Println("friend:", friend.Connect(ctx, addr))
	for name, c := range map[string]node.Config{"unlisted": {Secret: secret}, "stranger": {}} {
		n := start(c)
		err := n.Connect(ctx, addr)
		if err == nil { // it is turned away with its first stream
			_, err = n.Open(ctx, addr.ID, "/greet/1")
		}
		fmt.Printf("%s: not allowed: %t, no secret: %t\n", name, errors.Is(err, node.ErrNotAllowed), errors.Is(err, node.ErrSecret))
		n.Close()
	}
	// Unordered output:
	// friend: <nil>
	// unlisted: not allowed: true, no secret: false
	// stranger: not allowed: false, no secret: true
}
