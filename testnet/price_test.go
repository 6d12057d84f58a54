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
	for _, n := range []int{2, 3, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			links := regions{split: n / 2, near: 2 * time.Millisecond, far: 40 * time.Millisecond, rate: 10e6}
			net := between(t, n, links)
			for _, bytes := range []int{4 << 10, 64 << 10, 512 << 10} { // less than a window: beyond it a sender waits for the receiver's word
				for _, c := range ops.Candidates(ops.KindAllReduce, n, 0, int64(bytes), links) {
					checkPrice(t, c.Schedule, bytes, schedule.Price(c.Schedule, bytes, links), lasts(t, net, c.Schedule, bytes))
				}
			}
		})
	}
}

func checkPrice(t *testing.T, s schedule.Schedule, bytes int, price, took time.Duration) {
	t.Helper()
	most := 1.3
	if strings.Contains(s.Name, "ring") {
		most = 1.03 // with a heartbeat in between
	}
	t.Logf("%s of %d, %d bytes: %v for a price of %v", s.Name, s.Ranks, bytes, took, price)
	if ratio := float64(took) / float64(price); ratio < 0.99 || ratio > most {
		t.Errorf("%s of %d, %d bytes: %v is %.4f of its price", s.Name, s.Ranks, bytes, took, ratio)
	}
}

// between is a world of n ranks with such links. All that is priced on them runs in one:
// to form it takes longer than to use it.
func between(t *testing.T, n int, l regions) *testnet.Net {
	net := testnet.New(t, testnet.Config{
		Nodes: n, Network: testnet.Model, Port: simlink.Port{Up: l.rate, Down: l.rate},
		Ops: ops.Config{Lanes: 1},
	})
	for a := range n {
		for b := range a {
			if err := net.SetLink(a, b, simlink.Link{Latency: l.Latency(a, b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return net
}

// lasts is how long a schedule takes once its streams are open.
func lasts(t *testing.T, net *testnet.Net, s schedule.Schedule, bytes int) time.Duration {
	var took time.Duration
	for range 2 {
		time.Sleep(100 * time.Millisecond) // the last of what was before, and the heartbeats
		start := time.Now()
		err := net.Run(func(g *ops.Group) error {
			return g.Run(t.Context(), s, tensor.Of(make([]float32, bytes/4)), tensor.Sum).Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
	return took
}
