package flight_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// Two ranks disagree, write what they did last, and learn which of them was wrong.
func Example() {
	dir, err := os.MkdirTemp("", "flight")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var all sync.WaitGroup
	for _, w := range memnet.New(2) {
		all.Go(func() {
			r := flight.New(0)
			r.Enter(flight.World{Epoch: 1, Rank: w.Rank(), Size: w.Size()})
			g := ops.NewGroup(w, ops.Config{Observer: r})
			x := tensor.Of(make([]float32, 100+w.Rank())) // not as long on rank 1 as on rank 0
			if err := g.AllReduce(context.Background(), x, tensor.Sum).Wait(); err != nil {
				r.WriteFile(dir, flight.Reason{Text: err.Error(), Lost: -1})
			}
		})
	}
	all.Wait()
	logs, err := flight.ReadDir(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := flight.Diagnose(logs)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Sentence)
	// Output:
	// rank 1 called all_reduce #0 (float32 × 101, sum) where rank 0 called all_reduce #0 (float32 × 100, sum): every rank must give the same type, count, reduction and root
}
