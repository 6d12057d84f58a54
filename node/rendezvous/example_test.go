package rendezvous_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"peermesh/node"
	"peermesh/node/rendezvous"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Two nodes of one process find each other in a file.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "rendezvous")
	check(err)
	defer os.RemoveAll(dir)

	found, done := make(chan peer.ID, 2), make(chan error, 2)
	f, err := rendezvous.Parse("file://"+filepath.Join(dir, "run-42"), rendezvous.Config{})
	check(err)
	for range 2 {
		n, err := node.Start(ctx, node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		check(err)
		defer n.Close()
		meet := func(p peer.AddrInfo) { found <- p.ID }
		go func() { done <- f.Find(ctx, rendezvous.Search{Node: n, Mesh: "run-42", Found: meet}) }()
	}
	if <-found != <-found {
		fmt.Println("they have found each other")
	}
	cancel()
	check(<-done)
	check(<-done)
	// Output: they have found each other
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
