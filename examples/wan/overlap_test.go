package main

import (
	"strings"
	"testing"
	"time"
)

// links are 200 Mbit/s and 20 ms to and fro, among four ranks.
var links = options{ranks: 4, rate: 200, delay: 10 * time.Millisecond, net: "example"}

// What eight bits and four save of the time that communication takes, computing aside: all of
// the bytes and none of the latency, 40 ms for the two messages that an average needs.
func TestCodecTime(t *testing.T) {
	float, err := stepTime(t.Context(), pace{net: nets["example"]}, contender{}, links)
	if err != nil {
		t.Fatal(err)
	}
	for codec, least := range map[string]float64{"int8": 2.8, "int4": 4.5} {
		coded, err := stepTime(t.Context(), pace{net: nets["example"]}, contender{codec: codec}, links)
		if err != nil {
			t.Fatal(err)
		}
		if got := float.Seconds() / coded.Seconds(); got < least {
			t.Errorf("%s: %v for %v of floats, %.2f times less, want %v", codec, coded, float, got, least)
		}
	}
}

// A step takes no more than a tenth longer than the longer of computing and communication,
// as far as gradients are there in time: where communication takes four times as long,
// and where computing takes half as long again or more. In virtual time that is exact.
func TestOverlap(t *testing.T) {
	for name, net := range nets {
		t.Run(name, func(t *testing.T) { overlaps(t, net) })
	}
}

func overlaps(t *testing.T, net []layer) {
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
	for _, share := range []float64{0.2, 1.6} {
		p := pace{net: net, compute: time.Duration(share * float64(alone))}
		with, err := stepTime(t.Context(), p, contender{}, links)
		if err != nil {
			t.Fatal(err)
		}
		p.after = true
		without, err := stepTime(t.Context(), p, contender{}, links)
		if err != nil {
			t.Fatal(err)
		}
		longer := max(alone, p.compute)
		if float64(with) > 1.1*float64(longer) || with < longer*99/100 {
			t.Errorf("compute %v, communication %v: %v together", p.compute, alone, with)
		}
		if without < (alone+p.compute)*98/100 {
			t.Errorf("compute %v, communication %v: %v one after the other", p.compute, alone, without)
		}
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
