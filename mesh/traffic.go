package mesh

import "time"

// What a world can tell of its own links while it is at work: for pages and metrics.

// RTT is the round trip to a rank as its heartbeats show it, smoothed as TCP's is (RFC
// 6298); zero before the first two, and to this rank. It includes what a busy
// process adds.
func (w *World) RTT(rank int) time.Duration {
	if rank < 0 || rank >= w.Size() {
		return 0
	}
	l := w.has(rank)
	if l == nil { // to ask makes no link
		return 0
	}
	p := &l.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rtt
}

// Traffic is how many bytes this rank has sent to another and received from it since
// the world began, on all lanes: payloads with the 48 bytes or so before each, without
// what signals, heartbeats and the network's own protocols add.
func (w *World) Traffic(rank int) (sent, received int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, o := range w.out {
		if key.rank == rank {
			sent += o.total.Load()
		}
	}
	for key, l := range w.in {
		if key.rank == rank {
			received += l.total.Load()
		}
	}
	return sent, received
}
