package local

import (
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

type real interface{ float32 | float64 }

// A part is a run of the model's elements, of one type, that travels at once.
type part struct {
	dtype  tensor.DType
	turn   int64 // how many steps it is before part 0 in each round
	spans  []span
	flight tensor.Tensor // what travels
	theirs tensor.Tensor // what a partner has sent; of pairs only
	lost   tensor.Tensor // what the codec has not got across of the flight; with a codec only
	owed   tensor.Tensor // of that, what the model does not have any more, and sends with the next

	works  []*ops.Work // under way, if any
	due    int64       // the step at which they are waited for; zero: nothing is under way
	landed bool        // they have ended well, and count with the next commit
	pair   bool        // flight and theirs are models rather than a sum
}

// A span is a part's elements of one parameter.
type span struct {
	of     int // which parameter
	lo, hi int
}

// cut deals the parameters' elements to n parts, in order and evenly. An element type
// has parts of its own, and n of them or as many as it has elements.
func cut(params []*trainer.Param, p plan) []*part {
	var parts []*part
	for _, t := range []tensor.DType{tensor.Float32, tensor.Float64} {
		total := 0
		for _, q := range params {
			if q.Value.DType() == t {
				total += q.Value.Len()
			}
		}
		n := min(p.parts, total)
		for k := range n {
			parts = append(parts, newPart(params, t, total*k/n, total*(k+1)/n, p, int64(k)*p.every/int64(n)))
		}
	}
	return parts
}

// newPart is elements [lo, hi) of all that are of a type.
func newPart(params []*trainer.Param, t tensor.DType, lo, hi int, p plan, turn int64) *part {
	c := &part{dtype: t, turn: turn, flight: tensor.New(t, hi-lo)}
	if p.pairs {
		c.theirs = tensor.New(t, hi-lo)
	}
	if p.codec != nil {
		c.lost, c.owed = tensor.New(t, hi-lo), tensor.New(t, hi-lo)
	}
	at := 0 // where a parameter begins
	for i, q := range params {
		if q.Value.DType() != t {
			continue
		}
		n := q.Value.Len()
		if from, to := max(lo-at, 0), min(hi-at, n); from < to {
			c.spans = append(c.spans, span{i, from, to})
		}
		at += n
	}
	return c
}

// copyOf is tensors of the parameters' shapes, with their values.
func copyOf(params []*trainer.Param) ([]*trainer.Param, error) {
	var all []*trainer.Param
	for _, p := range params {
		if t := p.Value.DType(); t != tensor.Float32 && t != tensor.Float64 {
			return nil, fmt.Errorf("local: parameter %q is %v: want float32 or float64", p.Name, p.Value)
		}
		c := &trainer.Param{Name: p.Name, Value: tensor.New(p.Value.DType(), p.Value.Shape()...)}
		if err := tensor.Copy(c.Value, p.Value); err != nil {
			return nil, fmt.Errorf("local: copying %q: %w", p.Name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// transfer copies the values of some parameters to others of their shapes.
func transfer(to, from []*trainer.Param) error {
	for i, p := range from {
		if err := tensor.Copy(to[i].Value, p.Value); err != nil {
			return fmt.Errorf("local: copying %q: %w", p.Name, err)
		}
	}
	return nil
}

func addressable(x tensor.Tensor) bool {
	_, single := tensor.Data[float32](x)
	_, double := tensor.Data[float64](x)
	return single || double
}

// elements is those of a tensor that is known to have them.
func elements[T real](x tensor.Tensor) []T {
	e, _ := tensor.Data[T](x)
	return e
}

// each calls f for the spans of a part, with the same elements of the flight and of two
// or three lists of parameters; the third may be nil.
func each[T real](c *part, f func(flight, live, anchor, momentum []T), live, anchor, momentum []*trainer.Param) {
	flight := elements[T](c.flight)
	for _, s := range c.spans {
		n := s.hi - s.lo
		var m []T
		if momentum != nil {
			m = elements[T](momentum[s.of].Value)[s.lo:s.hi]
		}
		f(flight[:n], elements[T](live[s.of].Value)[s.lo:s.hi], elements[T](anchor[s.of].Value)[s.lo:s.hi], m)
		flight = flight[n:]
	}
}
