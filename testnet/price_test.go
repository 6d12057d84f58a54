package testnet_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// regions are two places: near within, far between.
type regions struct {
	split     int // ranks below are in the first
	near, far time.Duration
	rate      float64
}

func (r regions) Latency(from, to int) time.Duration {
	if (from < r.split) == (to < r.split) {
		return r.near
	}
	return r.far
}

func (r regions) Rate(int, int) float64 { return r.rate }

// A schedule over modelled links takes what schedule.Price says and a little more:
// headers, and the nanoseconds of settling. Where ranks that were idle in a round
// run ahead, what they send shares the downlink of one that still receives the
// round before, of which Price knows nothing.
func TestPrice(t *testing.T) {
	const bytes = 512 << 10 // less than a window: beyond it a sender waits for the receiver's word
	for _, n := range []int{2, 3, 4} {
		links := regions{split: n / 2, near: 2 * time.Millisecond, far: 40 * time.Millisecond, rate: 10e6}
		for _, c := range ops.Candidates(ops.KindAllReduce, n, 0, bytes, links) {
			synctest.Test(t, func(t *testing.T) {
				price := schedule.Price(c.Schedule, bytes, links)
				took := priced(t, c.Schedule, bytes, links)
				ratio := float64(took) / float64(price)
				t.Logf("%s of %d: %v for a price of %v", c.Schedule.Name, n, took, price)
				most := 1.3
				if strings.Contains(c.Schedule.Name, "ring") {
					most = 1.03 // with a heartbeat in between
				}
				if ratio < 0.99 || ratio > most {
					t.Errorf("%s of %d: %v is %.4f of its price", c.Schedule.Name, n, took, ratio)
				}
			})
		}
	}
}

// priced is how long a schedule takes on modelled links, once its streams are open.
func priced(t *testing.T, s schedule.Schedule, bytes int, l regions) time.Duration {
	net := testnet.New(t, testnet.Config{
		Nodes: s.Ranks, Network: testnet.Model, Port: simlink.Port{Up: l.rate, Down: l.rate},
		Ops: ops.Config{Lanes: 1},
	})
	for a := range s.Ranks {
		for b := range a {
			if err := net.SetLink(a, b, simlink.Link{Latency: l.Latency(a, b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var took time.Duration
	for range 2 {
		err := net.Run(func(g *ops.Group) error { return g.Barrier(t.Context()).Wait() })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // the last of the barrier, and the heartbeats
		start := time.Now()
		err = net.Run(func(g *ops.Group) error {
			return g.Run(t.Context(), s, tensor.Of(make([]float32, bytes/4)), tensor.Sum).Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
	return took
}
