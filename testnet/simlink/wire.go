package simlink

import "time"

// A Port is what a host's uplink and downlink carry, and how much may wait.
type Port struct {
	// Up and Down are rates in bytes per second. Zero: without bound.
	Up, Down float64
	// Queue is how many bytes may wait for the uplink before the host's streams
	// are held back, as by a full socket buffer. Zero: DefaultQueue.
	Queue int
}

// A Link is the way between two hosts; both directions are alike.
type Link struct {
	// Latency is how long a bit travels.
	Latency time.Duration
	// Jitter is the most that a packet is late beyond that. Its amount follows
	// from the seed and the packet's place on the link, and packets keep their
	// order.
	Jitter time.Duration
	// Rate is what the way carries in bytes per second, in each direction, beside
	// the ports at its ends. Zero: without bound.
	Rate float64
	// Loss is the share of packets, from 0 to 1, that are lost and come a round
	// trip later, or RetransmitAfter if that is more. Those behind them wait. A
	// datagram that is lost does not come.
	Loss float64
}

const (
	// DefaultQueue is the uplink queue of a zero Port, in bytes.
	DefaultQueue = 64 << 10
	// RetransmitAfter is the least delay of a packet that was lost.
	RetransmitAfter = 10 * time.Millisecond
	// maxResends bounds the losses of one packet.
	maxResends = 16
)

// A pipe carries bits in order at a rate: an uplink, a downlink or a way between.
type pipe struct {
	rate float64       // bytes per second; zero is without bound
	free time.Duration // when the last bit that was accepted has gone in
}

// pass takes a packet whose first bit comes at f and whose last at l, and says
// when they leave. Bits flow through: a packet that has come slowly over the pipe
// before does not wait to be whole.
func (p *pipe) pass(f, l time.Duration, size int) (first, last time.Duration) {
	first = max(p.free, f)
	last = max(first+wireTime(size, p.rate), l)
	p.free = last
	return first, last
}

// wireTime is how long size bytes occupy a pipe.
func wireTime(size int, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(size) / rate * 1e9)
}

// A way is one direction between two hosts.
type way struct {
	from, to *Host
	link     Link
	pipe     pipe
	cut      bool
	cuts     int // so far: tells one cut from the next

	sent  uint64             // packets, which number them
	next  uint64             // the packet that must arrive next
	early map[uint64]*packet // arrived, but not their turn yet

	datagrams uint64 // sent, which have no order
	conns     uint64 // dialled so far, from this host to that
	count     Count
}

// delay is how long the way's n-th packet takes, by the seed and nothing else.
func (w *way) delay(seed, n uint64) time.Duration {
	d := w.link.Latency
	r := draw{hash(seed, uint64(w.from.index), uint64(w.to.index), n)}
	if w.link.Jitter > 0 {
		d += time.Duration(r.next() % uint64(w.link.Jitter+1))
	}
	for resends := 0; w.link.Loss > 0 && resends < maxResends && r.float() < w.link.Loss; resends++ {
		d += max(2*w.link.Latency, RetransmitAfter)
	}
	return d
}

// fate is delay for a datagram, which nobody sends again.
func (w *way) fate(seed, n uint64) (d time.Duration, lost bool) {
	r := draw{hash(seed, uint64(w.from.index), uint64(w.to.index), n)}
	d = w.link.Latency
	if w.link.Jitter > 0 {
		d += time.Duration(r.next() % uint64(w.link.Jitter+1))
	}
	return d, w.link.Loss > 0 && r.float() < w.link.Loss
}

// A draw is a stream of pseudo-random numbers: SplitMix64.
type draw struct{ state uint64 }

func (d *draw) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float is in [0, 1).
func (d *draw) float() float64 { return float64(d.next()>>11) / (1 << 53) }

// hash mixes numbers into one.
func hash(parts ...uint64) uint64 {
	var d draw
	for _, p := range parts {
		d.state ^= p
		d.state = d.next()
	}
	return d.state
}
