package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"peermesh/mesh"
	"peermesh/trainer/mnist"
)

// bars are n images whose label says which two rows are bright.
func bars(n int) *mnist.Set {
	s := &mnist.Set{Images: make([]byte, n*mnist.Pixels), Labels: make([]byte, n)}
	for i := range s.Labels {
		s.Labels[i] = byte(i * 7 % mnist.Classes)
		for p := range 2 * mnist.Side {
			s.Images[i*mnist.Pixels+(int(s.Labels[i])*2+4)*mnist.Side+p] = byte(200 + (i*p)%50)
		}
	}
	return s
}

// Each contender learns in a tiny form of the example, and sends about what its name says.
func TestCompete(t *testing.T) {
	data := &mnist.Data{Train: bars(240), Test: bars(101)}
	o := options{ranks: 2, epochs: 2, batch: 24, threads: 1, look: 20, target: 80, price: 200, latency: time.Millisecond}
	var ddp int64
	for _, text := range []string{"ddp", "lazy", "ddp+int8", "diloco/5+int8", "streaming/4", "pairs/2"} {
		c, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := compete(t.Context(), here(o), 1, data, c, o)
		if err != nil {
			t.Fatal(err)
		}
		if ddp == 0 {
			ddp = out.sent
		}
		if out.steps != 20 || out.accuracy < 0.8 || out.hit == 0 || out.took < out.hit {
			t.Errorf("%s: %+v", text, out)
		}
		less := map[string]float64{"ddp": 1, "lazy": 1, "ddp+int8": 3.9, "diloco/5+int8": 15, "streaming/4": 3, "pairs/2": 1.7}[text]
		if got := float64(ddp) / float64(out.sent); got < 0.9*less || got > 1.3*less {
			t.Errorf("%s: %.2f times fewer bytes, want about %v", text, got, less)
		}
		if want := time.Duration(float64(out.sent) / 25e6 * float64(time.Second)); onLink(out, c, o) < want {
			t.Errorf("%s: %v on the link, its bytes alone take %v", text, onLink(out, c, o), want)
		}
	}
}

// A seed is another run, and the same seed the same one.
func TestSeeds(t *testing.T) {
	data := &mnist.Data{Train: bars(96), Test: bars(101)}
	c, err := parse("ddp")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[float64]bool)
	for _, seed := range []uint64{0, 1, 2, 3} {
		o := options{ranks: 2, epochs: 1, steps: 1, batch: 24, threads: 1, seed: seed}
		var accuracy [2]float64
		for i := range accuracy {
			out, err := compete(t.Context(), here(o), 1, data, c, o)
			if err != nil {
				t.Fatal(err)
			}
			accuracy[i] = out.accuracy
		}
		if accuracy[0] != accuracy[1] {
			t.Errorf("seed %d: accuracy %v, then %v", seed, accuracy[0], accuracy[1])
		}
		seen[accuracy[0]] = true
	}
	if len(seen) < 2 {
		t.Errorf("four seeds, one accuracy: %v", seen)
	}
}

// On modelled links messages take their time.
func TestModelledLinks(t *testing.T) {
	c, err := parse("localsgd/2")
	if err != nil {
		t.Fatal(err)
	}
	data := &mnist.Data{Train: bars(48), Test: bars(20)}
	o := options{ranks: 2, epochs: 1, batch: 12, threads: 1, rate: 500, delay: 10 * time.Millisecond}
	out, err := compete(t.Context(), here(o), 1, data, c, o)
	if err != nil {
		t.Fatal(err)
	}
	if least := 6 * o.delay; out.took < least {
		t.Errorf("two rounds and an end took %v, their messages alone take %v", out.took, least)
	}
}

// A process that is one rank competes on the world that its environment names, by one method
// after the other.
func TestJoined(t *testing.T) {
	t.Setenv(mesh.EnvWorld, "1")
	t.Setenv(mesh.EnvListen, "/ip4/127.0.0.1/tcp/0")
	at, rank, size, leave, err := joined(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []contender
	for _, text := range []string{"ddp", "lazy+int8", "diloco/5"} {
		c, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	var out strings.Builder
	o := options{ranks: size, epochs: 1, batch: 12, threads: 1, look: 2, target: 101}
	err = table(t.Context(), &out, at, rank, &mnist.Data{Train: bars(48), Test: bars(20)}, all, o)
	if err := errors.Join(err, leave()); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if !strings.Contains(out.String(), c.text) {
			t.Errorf("no line of %s:\n%s", c.text, &out)
		}
	}
	t.Setenv(mesh.EnvWorld, "none")
	if _, _, _, _, err := joined(t.Context()); err == nil || !strings.Contains(err.Error(), mesh.EnvWorld) {
		t.Errorf("a world of none: %v", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"gossip/3": "no method", "diloco/x": `every "x"`, "diloco/0": "every", "ddp/5": "in every step", "lazy/2": "in every step", "ddp+zip": "zip",
		"diloco/5+topk": "for gradients only", "pairs/4+int8": "as they are", "streaming/2": "4 parts",
	} {
		if _, err := parse(text); err == nil {
			if c, _ := parse(text); c.method != nil {
				o := options{ranks: 2, epochs: 1, batch: 12}
				_, err = compete(t.Context(), here(o), 1, &mnist.Data{Train: bars(24), Test: bars(10)}, c, o)
				if err != nil && strings.Contains(err.Error(), want) {
					continue
				}
			}
			t.Errorf("%q is a contender", text)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range strings.Split(contenders+",ddp+powersgd,lazy,lazy+int4", ",") {
		if _, err := parse(text); err != nil {
			t.Error(err)
		}
	}
}
