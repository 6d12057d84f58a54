package main

import (
	"fmt"
	"strconv"
	"strings"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/compress"
	"peermesh/trainer/local"
)

// A contender is a method of the table: name[/every][+codec].
type contender struct {
	text   string
	every  int          // steps; 1 for a DDP
	lazy   bool         // a DDP that waits in the next step's forward pass
	method local.Method // nil: DDP
	codec  string       // empty: floats
}

func parse(text string) (contender, error) {
	c := contender{text: text}
	name, codec, _ := strings.Cut(text, "+")
	c.codec = codec
	name, every, found := strings.Cut(name, "/")
	if found {
		n, err := strconv.Atoi(every)
		if err != nil || n < 1 {
			return c, fmt.Errorf("%q: every %q steps", text, every)
		}
		c.every = n
	}
	if name == "ddp" || name == "lazy" {
		if found {
			return c, fmt.Errorf("%q: a DDP synchronises in every step", text)
		}
		c.every, c.lazy = 1, name == "lazy"
		_, err := c.hook(nil)
		return c, err
	}
	how, err := c.coding()
	if err != nil {
		return c, err
	}
	if c.method, err = tuned(name, c.every, how); err != nil {
		return c, fmt.Errorf("%q: %w", text, err)
	}
	return c, nil
}

// tuned is a method with settings for a run of some hundred steps, which is few rounds:
// less momentum than DiLoCo's authors take for tens of thousands.
func tuned(name string, every int, c ops.Codec) (local.Method, error) {
	few := local.DiLoCo{Every: every, Codec: c, Rate: 0.8, Momentum: 0.5}
	switch name {
	case "diloco":
		return few, nil
	case "late": // a DiLoCo whose outer steps come a tenth of a round late
		few.Delay = every / 10
		return few, nil
	case "streaming":
		return local.StreamingDiLoCo{DiLoCo: few}, nil
	}
	return local.Named(name, every, c)
}

// coding is the codec alone.
func (c contender) coding() (ops.Codec, error) {
	if c.codec == "" {
		return nil, nil
	}
	h, err := compress.New(c.codec, nil)
	if err != nil {
		return nil, err
	}
	coded, ok := h.(*compress.Coded)
	if !ok {
		return nil, fmt.Errorf("%q: %s is for gradients only", c.text, c.codec)
	}
	return coded.Codec, nil
}

// hook is what averages gradients; nil is a plain all-reduce.
func (c contender) hook(params []*trainer.Param) (trainer.Hook, error) {
	if c.codec == "" {
		return nil, nil
	}
	return compress.New(c.codec, params)
}
