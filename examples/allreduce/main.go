// Allreduce adds up a vector over all ranks, once and while computing.
//
//	go run ./examples/allreduce -world 3                   # the first peer
//	go run ./examples/allreduce -world 3 -bootstrap ADDR   # each other one
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
	world := flag.Int("world", 2, "number of peers")
	flag.Parse()
	ctx := context.Background()
	n, err := node.Start(ctx, node.Config{})
	check(err)
	defer n.Close()
	c := mesh.Config{Name: "allreduce", World: *world}
	if *bootstrap != "" {
		c.Bootstrap = []string{*bootstrap}
	} else {
		fmt.Printf("now start: go run ./examples/allreduce -world %d -bootstrap %s\n", *world, n.Addrs()[0])
	}
	m, err := mesh.Join(ctx, n, c)
	check(err)
	w, err := m.World(ctx)
	check(err)
	g := ops.NewGroup(w, ops.Config{})

	x := []float64{1, float64(g.Rank())}
	check(g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait())
	fmt.Printf("rank %d: the sum is %v\n", g.Rank(), x)

	y := []float64{float64(g.Rank())}
	work := g.AllReduce(ctx, tensor.Of(y), tensor.Max) // under way
	fmt.Printf("rank %d: computing something else\n", g.Rank())
	check(work.Wait()) // y may be used again
	fmt.Printf("rank %d: the largest rank is %v\n", g.Rank(), y[0])
	check(m.Leave(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
