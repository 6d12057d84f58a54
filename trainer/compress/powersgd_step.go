package compress

import (
	"cmp"
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/internal/finite"
)

// A pass is one bucket on its way through a PowerSGD.
type pass[T real] struct {
	ctx  context.Context
	g    *ops.Group
	s    *PowerSGD
	step int64

	wide  []matrix[T]
	plain []T   // of what is not compressed, one after the other
	parts [][]T // where that belongs
	p, q  []T   // the factors, one after the other
}

// A matrix is a gradient that is compressed.
type matrix[T real] struct {
	*factor
	x, rest []T // n × m; rest may be nil
	p, q    []T // n × r, m × r
}

// begin sends what is not compressed, and the sums of P; the rest follows in Wait, bucket
// by bucket in the same order on all ranks.
func begin[T real](ctx context.Context, g *ops.Group, s *PowerSGD, b trainer.Bucket, rest []T, step int64) trainer.Pending {
	w := &pass[T]{ctx: ctx, g: g, s: s, step: step}
	w.lay(b, rest)
	for _, m := range w.wide {
		copy(m.q, host[T](m.factor.q))
		orthonormalize(m.q, m.m, m.r, s.c.Epsilon)
		times(m.p, m.x, m.q, m.n, m.m, m.r)
	}
	first := all{s.send(ctx, g, tensor.Of(w.p))}
	if len(w.plain) > 0 {
		first = append(first, g.AllReduce(ctx, tensor.Of(w.plain), tensor.Sum))
	}
	return &trainer.Later{First: first, Then: w.finish}
}

// lay finds the bucket's matrices and makes room for their factors.
func (w *pass[T]) lay(b trainer.Bucket, rest []T) {
	var ps, qs int
	at := 0
	for i, p := range b.Params {
		x := host[T](b.Parts[i])
		lo, hi := at, at+len(x)
		at = hi
		f := w.s.of[p.Name]
		if f == nil || f.n*f.m != len(x) {
			w.plain, w.parts = append(w.plain, x...), append(w.parts, x)
			if rest != nil {
				clear(rest[lo:hi])
			}
			continue
		}
		m := matrix[T]{factor: f, x: x}
		if rest != nil {
			m.rest = rest[lo:hi]
		}
		w.wide = append(w.wide, m)
		ps, qs = ps+f.n*f.r, qs+f.m*f.r
	}
	w.p, w.q = make([]T, ps), make([]T, qs)
	ps, qs = 0, 0
	for i := range w.wide {
		m := &w.wide[i]
		m.p, m.q = w.p[ps:ps+m.n*m.r], w.q[qs:qs+m.m*m.r]
		ps, qs = ps+len(m.p), qs+len(m.q)
	}
}

// finish goes on from the sums of P.
func (w *pass[T]) finish() error {
	for _, x := range w.parts {
		w.plain = w.plain[copy(x, w.plain):]
	}
	for _, m := range w.wide {
		orthonormalize(m.p, m.n, m.r, w.s.c.Epsilon/float64(w.g.Size())) // gradients come divided
		transposed(m.q, m.x, m.p, m.n, m.m, m.r)
	}
	if err := w.s.send(w.ctx, w.g, tensor.Of(w.q)).Wait(); err != nil {
		return fmt.Errorf("compress: PowerSGD: %w", err)
	}
	for _, m := range w.wide {
		m.expand(w.g.Size())
		if finite.All(m.q) {
			copy(host[T](m.factor.q), m.q)
		} else {
			m.randomize(w.s.c.Seed, w.step) // as on all ranks
		}
	}
	return nil
}

// expand has PQᵀ take the gradient's place, and leaves this rank's part of what that does
// not say.
func (m *matrix[T]) expand(ranks int) {
	row := make([]T, m.m)
	for i := range m.n {
		p, x := m.p[i*m.r:][:m.r], m.x[i*m.m:][:m.m]
		clear(row)
		for k, v := range p {
			for j := range row {
				row[j] += T(v * m.q[j*m.r+k]) // the conversion forbids to fuse: ranks compute alike
			}
		}
		if m.rest != nil {
			rest := m.rest[i*m.m:][:m.m]
			for j, v := range row {
				d := x[j] - v/T(ranks)
				if d-d != 0 {
					d = 0
				}
				rest[j] = d
			}
		}
		copy(x, row)
	}
}

// all is several that have begun.
type all []trainer.Pending

// Unwrap shows a DDP those that have failed before they began.
func (a all) Unwrap() []trainer.Pending { return a }

func (a all) Wait() error {
	var err error
	for _, p := range a {
		err = cmp.Or(err, p.Wait()) // the first says why
	}
	if err != nil {
		err = fmt.Errorf("compress: PowerSGD: %w", err)
	}
	return err
}
