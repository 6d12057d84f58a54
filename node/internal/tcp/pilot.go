package tcp

import "time"

const (
	// lookEvery is how many bytes a distant connection sends from one look at it to the
	// next: a few milliseconds' worth at most on links that are worth it.
	lookEvery = 64 << 10
	// strayed losses within stretch segments make a link one that loses at random. A loss
	// in two thousand, which cubic bears, comes to that hardly ever; one in two hundred,
	// which leaves it a tenth of 200 Mbit/s, in every other stretch and soon.
	strayed = 3
	stretch = 1024
)

// A sample is what the kernel has counted of a connection, and how long its round trips
// are.
type sample struct {
	sent, again uint32        // segments with data, and those sent again: they wrap around
	rtt, least  time.Duration // lately, and the shortest
}

// stray reports whether what is lost now is lost on the way, and not to a full queue: that
// would show in the round trip. A queue of less than half of a round trip does not, but
// there cubic leaves the link idle after each loss, so it is the wrong one too.
func (s sample) stray() bool { return s.rtt < s.least+s.least/2 }

// A pilot watches how a distant connection fares, and gives it the congestion control for
// links that lose packets, for good, once it has seen that it is on one.
type pilot struct {
	look func() (sample, bool) // false: the system does not say
	turn func()

	unseen int    // bytes sent since the last look
	begin  sample // of the stretch
	last   sample
	lost   uint32 // in the stretch, at random
}

// sent is told of n bytes. A nil pilot does nothing. One goroutine calls it at a time.
func (p *pilot) sent(n int) {
	if p == nil || p.turn == nil {
		return
	}
	if p.unseen += n; p.unseen < lookEvery {
		return
	}
	p.unseen = 0
	s, ok := p.look()
	if !ok {
		p.turn = nil
		return
	}
	if s.stray() {
		p.lost += s.again - p.last.again
	}
	p.last = s
	switch {
	case p.lost >= strayed:
		p.turn()
		p.turn = nil
	case s.sent-p.begin.sent >= stretch:
		p.begin, p.lost = s, 0
	}
}
