package tcp

import (
	"testing"
	"time"
)

// A journey is a made link: how long its round trips are, and which segments it loses.
type journey struct {
	sample
	every uint32 // segments from one loss to the next; 0: none is lost
	turns int
	mute  bool
}

func (j *journey) pilot() *pilot {
	return &pilot{
		look: func() (sample, bool) { return j.sample, !j.mute },
		turn: func() { j.turns++ },
	}
}

// travel has a pilot see segments go by, one after the other.
func (j *journey) travel(p *pilot, segments int) {
	for range segments {
		j.sent++
		if j.every > 0 && j.sent%j.every == 0 {
			j.again++
		}
		p.sent(1448)
	}
}

func TestPilot(t *testing.T) {
	const way = 40 * time.Millisecond
	for name, c := range map[string]struct {
		journey
		turns int
	}{
		"nothing lost":              {journey{sample: sample{rtt: way, least: way}}, 0},
		"one in 200":                {journey{sample: sample{rtt: way + 5*time.Millisecond, least: way}, every: 200}, 1},
		"one in 2000":               {journey{sample: sample{rtt: way, least: way}, every: 2000}, 0},
		"one in 200, full queue":    {journey{sample: sample{rtt: 2 * way, least: way}, every: 200}, 0},
		"counters that wrap":        {journey{sample: sample{sent: 1<<32 - 300, again: 1<<32 - 1, rtt: way, least: way}, every: 150}, 1},
		"a system that says naught": {journey{sample: sample{rtt: way, least: way}, every: 10, mute: true}, 0},
	} {
		p := c.pilot()
		p.begin, p.last = c.sample, c.sample // as of a connection of some age
		c.travel(p, 20_000)
		if c.journey.turns != c.turns {
			t.Errorf("%s: turned %d times, want %d", name, c.journey.turns, c.turns)
		}
	}
}

// What is lost to a queue does not count once the queue is gone.
func TestPilotForgets(t *testing.T) {
	j := journey{sample: sample{rtt: 140 * time.Millisecond, least: 40 * time.Millisecond}}
	p := j.pilot()
	j.again = 500 // a start that has filled the queue
	j.travel(p, 100)
	j.rtt = j.least
	j.travel(p, 5000)
	if j.turns != 0 {
		t.Error("took losses to a queue for those of the link")
	}
	j.every = 100
	j.travel(p, 500)
	if j.turns != 1 {
		t.Errorf("turned %d times on a link that has become bad", j.turns)
	}
}

func TestNoPilot(t *testing.T) {
	var p *pilot
	p.sent(1 << 20) // of a near connection
}
