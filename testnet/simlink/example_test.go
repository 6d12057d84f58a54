package simlink_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/node"
	"peermesh/testnet/simlink"
)

// Two nodes, 10 ms from each other, without a socket: to connect takes one round trip
// of virtual time, and a way that is cut swallows all.
func Example() {
	synctest.Test(new(testing.T), func(*testing.T) {
		ctx := context.Background()
		net := simlink.New(simlink.Config{Hosts: 2, Link: simlink.Link{Latency: 10 * time.Millisecond}})
		defer net.Close()
		var nodes [2]*node.Node
		for i := range nodes {
			n, err := node.Start(ctx, net.Host(i).Config())
			if err != nil {
				fmt.Println(err)
				return
			}
			defer n.Close()
			nodes[i] = n
		}
		to, err := node.ParseAddr(net.Host(1).Addr())
		if err != nil {
			fmt.Println(err)
			return
		}
		net.Cut(0, 1)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		fmt.Println("cut off:", nodes[0].Connect(short, to) != nil)
		net.Heal(0, 1)
		start := time.Now()
		fmt.Println("healed:", nodes[0].Connect(ctx, to), time.Since(start) >= 20*time.Millisecond)
	})
	// Output:
	// cut off: true
	// healed: <nil> true
}

// Exact runs are told apart by their seeds only.
func ExampleExact() {
	traces := make(map[string]int)
	for range 3 {
		trace := ""
		simlink.Exact(func() {
			synctest.Test(new(testing.T), func(*testing.T) {
				net := simlink.New(simlink.Config{Hosts: 2, Seed: 1, Trace: func(e simlink.Event) { trace += e.String() + "\n" }})
				net.Freeze(1)
				time.Sleep(time.Second)
				net.Thaw(1)
				if err := net.Close(); err != nil {
					fmt.Println(err)
				}
			})
		})
		traces[trace]++
	}
	for trace, times := range traces {
		fmt.Print(trace, times, " times\n")
	}
	// Output:
	// 0s 1→1 freeze
	// 1s 1→1 thaw
	// 3 times
}
