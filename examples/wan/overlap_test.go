package main

import (
	"strings"
	"testing"
	"time"
)

// links are 200 Mbit/s and 20 ms to and fro, among four ranks.
var links = options{ranks: 4, rate: 200, delay: 10 * time.Millisecond, net: "convnet"}

// What eight bits and four save of the time that communication takes, computing aside: all of
// the bytes and none of the latency, 20 ms for the two messages that an average needs.
func TestCodecTime(t *testing.T) {
	float, err := stepTime(t.Context(), pace{net: networks["convnet"].layers}, contender{}, links)
	if err != nil {
		t.Fatal(err)
	}
	for codec, least := range map[string]float64{"int8": 2.5, "int4": 3.2} {
		coded, err := stepTime(t.Context(), pace{net: networks["convnet"].layers}, contender{codec: codec}, links)
		if err != nil {
			t.Fatal(err)
		}
		if got := float.Seconds() / coded.Seconds(); got < least {
			t.Errorf("%s: %v for %v of floats, %.2f times less, want %v", codec, coded, float, got, least)
		}
	}
}

// A step takes hardly more than a tenth longer than the longer of computing and communication:
// under backward alone as far as gradients are there in time, which is where communication
// takes four times as long, and where computing takes half as long again or more; and between
// those too when the next forward pass is over what still travels. In virtual time that is
// exact.
func TestOverlap(t *testing.T) {
	net := networks["convnet"].layers
	alone, err := stepTime(t.Context(), pace{net: net}, contender{}, links)
	if err != nil {
		t.Fatal(err)
	}
	elements := 0
	for _, l := range net {
		elements += l.elements
	}
	bytes := 2 * float64(links.ranks-1) / float64(links.ranks) * 4 * float64(elements)
	bound := time.Duration(bytes / bytesPerSecond(links.rate) * float64(time.Second))
	if alone < bound || alone > bound*5/4+4*links.delay {
		t.Errorf("communication alone takes %v, its bytes %v", alone, bound)
	}
	if underRace {
		overlaps(t, net, alone, both, 0.5, 1.1)
		return
	}
	overlaps(t, net, alone, back, 0.2, 1.1)
	overlaps(t, net, alone, back, 1.6, 1.1)
	overlaps(t, net, alone, both, 0.5, 1.1)
	// Where both take as long, what is late is the latency of the first layer's gradient, which
	// comes last and is needed first: 14 ms of 107.
	overlaps(t, net, alone, both, 1, 1.15)
}

// Where computing takes twice as long as communication, a step is longer than it by the first
// layer's latency, one way, and little else: also where conv2's gradient is ready hardly before
// that and has many bytes, and where bytes are encoded.
func TestOverlapButForLatency(t *testing.T) {
	for name, c := range map[string]contender{"example": {}, "convnet": {codec: "int8"}} {
		net := networks[name].layers
		alone, err := stepTime(t.Context(), pace{net: net}, c, links)
		if err != nil {
			t.Fatal(err)
		}
		p := pace{net: net, compute: 2 * alone, way: both}
		with, err := stepTime(t.Context(), p, c, links)
		if err != nil {
			t.Fatal(err)
		}
		if late := with - p.compute; late < links.delay || late > links.delay*3/2 {
			t.Errorf("%s: %v longer than computing, want about %v", name, late, links.delay)
		}
	}
}

// overlaps wants a step of a share of the communication's time in computing to take at most
// so many times the longer of the two.
func overlaps(t *testing.T, net []layer, alone time.Duration, w way, share, most float64) {
	t.Helper()
	p := pace{net: net, compute: time.Duration(share * float64(alone)), way: w}
	with, err := stepTime(t.Context(), p, contender{}, links)
	if err != nil {
		t.Fatal(err)
	}
	longer := max(alone, p.compute)
	if float64(with) > most*float64(longer) || with < longer*98/100 {
		t.Errorf("compute %v, communication %v: %v together, %.2f times the longer", p.compute, alone, with, with.Seconds()/longer.Seconds())
	}
	if w == both {
		return
	}
	p.way = nothing
	without, err := stepTime(t.Context(), p, contender{}, links)
	if err != nil {
		t.Fatal(err)
	}
	if without < (alone+p.compute)*98/100 {
		t.Errorf("compute %v, communication %v: %v one after the other", p.compute, alone, without)
	}
}

func TestOverlapTable(t *testing.T) {
	var out strings.Builder
	o := links
	o.ranks = 2
	if err := overlap(t.Context(), &out, "int8", o, 1); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("%d lines:\n%s", lines, &out)
	}
	if err := overlap(t.Context(), &out, "zip", links); err == nil || !strings.Contains(err.Error(), "zip") {
		t.Errorf("a codec zip: %v", err)
	}
}
