// Hello sends a number from rank 0 to rank 1, blocking and not: the first pages
// of the tutorial "Writing distributed applications with PyTorch".
//
//	go run ./examples/hello                   # one terminal; prints the other's line
//	go run ./examples/hello -bootstrap ADDR   # another terminal
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "multiaddr of the first peer")
	flag.Parse()
	ctx := context.Background()
	n, err := node.Start(ctx, node.Config{})
	check(err)
	defer n.Close()
	c := mesh.Config{Name: "hello", World: 2}
	if *bootstrap != "" {
		c.Bootstrap = []string{*bootstrap}
	} else {
		fmt.Println("now start: go run ./examples/hello -bootstrap", n.Addrs()[0])
	}
	m, err := mesh.Join(ctx, n, c)
	check(err)
	w, err := m.World(ctx)
	check(err)
	g := ops.NewGroup(w, ops.Config{})

	x := []float32{0} // rank 0 gives its 1 to rank 1, which adds 1 and gives it back
	if g.Rank() == 0 {
		x[0]++
		check(g.Send(ctx, tensor.Of(x), 1, 0))
		check(g.Irecv(ctx, tensor.Of(x), 1, 0).Wait())
	} else {
		check(g.Recv(ctx, tensor.Of(x), 0, 0))
		x[0]++
		check(g.Isend(ctx, tensor.Of(x), 0, 0).Wait())
	}
	fmt.Printf("Rank %d has data %v\n", g.Rank(), x[0])
	check(m.Leave(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
