package ops_test

import (
	"bytes"
	"errors"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// The operations of the matrix that deal in parts.

// concat is the bytes of tensors, one after the other.
func concat(xs ...tensor.Tensor) []byte {
	var b bytes.Buffer
	for _, x := range xs {
		b.Write(bytesOf(x))
	}
	return b.Bytes()
}

func runAllGather(g *ops.Group, c *cell) error {
	out := tensor.New(c.dtype, c.n, c.size) // stacked
	err := g.AllGather(ctx, out, c.parts()[g.Rank()]).Wait()
	return errors.Join(err, c.equal("out", out, concat(c.parts()...)))
}

// uneven are the parts that ranks give, the r-th of rank r.
func (c *cell) uneven() []tensor.Tensor {
	at := c.cut()
	all := make([]tensor.Tensor, c.n)
	for r := range all {
		all[r] = c.parts()[r].Slice(at[r], at[r+1])
	}
	return all
}

// empty is room for parts like these.
func empty(like []tensor.Tensor) []tensor.Tensor {
	all := make([]tensor.Tensor, len(like))
	for i, x := range like {
		all[i] = tensor.New(x.DType(), x.Len())
	}
	return all
}

func runAllGatherList(g *ops.Group, c *cell) error {
	parts := c.uneven()
	out := empty(parts)
	err := g.AllGatherList(ctx, out, parts[g.Rank()]).Wait()
	return errors.Join(err, c.equal("out", tensor.Of(concat(out...)), concat(parts...)))
}

func runAllGatherCoalesced(g *ops.Group, c *cell) error {
	var ins, outs, want []tensor.Tensor
	at := c.cut()
	for i, in := range pieces(c.parts()[g.Rank()], at) {
		ins = append(ins, in)
		outs = append(outs, tensor.New(c.dtype, c.n*in.Len()))
		for r := range c.n {
			want = append(want, c.parts()[r].Slice(at[i], at[i+1]))
		}
	}
	err := g.AllGatherCoalesced(ctx, outs, ins).Wait()
	return errors.Join(err, c.equal("outs", tensor.Of(concat(outs...)), concat(want...)))
}

func runGather(g *ops.Group, c *cell) error {
	for _, dst := range []int{0, c.n - 1} {
		var out tensor.Tensor
		if g.Rank() == dst {
			out = tensor.New(c.dtype, c.n*c.size)
		}
		err := g.Gather(ctx, out, c.parts()[g.Rank()], dst).Wait()
		if g.Rank() == dst {
			err = errors.Join(err, c.equal("out", out, concat(c.parts()...)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func runGatherList(g *ops.Group, c *cell) error {
	dst := c.n / 2
	parts := c.uneven()
	var out []tensor.Tensor
	if g.Rank() == dst {
		out = empty(parts)
	}
	err := g.GatherList(ctx, out, parts[g.Rank()], dst).Wait()
	if g.Rank() == dst {
		err = errors.Join(err, c.equal("out", tensor.Of(concat(out...)), concat(parts...)))
	}
	return err
}

func runScatter(g *ops.Group, c *cell) error {
	for _, src := range []int{0, c.n - 1} {
		whole := c.wholes()[src]
		var in tensor.Tensor
		if g.Rank() == src {
			in = clone(whole)
		}
		out := tensor.New(c.dtype, c.size)
		err := g.Scatter(ctx, out, in, src).Wait()
		if g.Rank() == src {
			err = errors.Join(err, c.equal("in", in, bytesOf(whole)))
		}
		if err = errors.Join(err, c.equal("out", out, bytesOf(whole.Slice(g.Rank()*c.size, (g.Rank()+1)*c.size)))); err != nil {
			return err
		}
	}
	return nil
}

func runScatterList(g *ops.Group, c *cell) error {
	src := c.n / 2
	parts := pieces(c.parts()[src], c.cut())
	var in []tensor.Tensor
	if g.Rank() == src {
		in = parts
	}
	out := tensor.New(c.dtype, parts[g.Rank()].Len())
	err := g.ScatterList(ctx, out, in, src).Wait()
	return errors.Join(err, c.equal("out", out, bytesOf(parts[g.Rank()])))
}

func runAllToAll(g *ops.Group, c *cell) error {
	in, out := clone(c.wholes()[g.Rank()]), tensor.New(c.dtype, c.n*c.size)
	var want []tensor.Tensor
	for _, x := range c.wholes() {
		want = append(want, x.Slice(g.Rank()*c.size, (g.Rank()+1)*c.size))
	}
	err := g.AllToAll(ctx, out, in).Wait()
	return errors.Join(err, c.equal("in", in, bytesOf(c.wholes()[g.Rank()])), c.equal("out", out, concat(want...)))
}

// split is how many rows rank s has for rank r: as many as c.size in all, with none
// for some.
func (c *cell) split(s, r int) int {
	rows := c.size / c.n
	if (s+2*r)%3 == 0 {
		return 0
	}
	return rows * (1 + (s+r)%2) / 2
}

func runAllToAllV(g *ops.Group, c *cell) error {
	me := g.Rank()
	var outSplits, inSplits []int
	var want []tensor.Tensor
	rows, given := 0, 0
	for r := range c.n {
		at := 0
		for to := range me {
			at += c.split(r, to)
		}
		want = append(want, c.parts()[r].Slice(at, at+c.split(r, me)))
		outSplits, inSplits = append(outSplits, c.split(r, me)), append(inSplits, c.split(me, r))
		rows, given = rows+c.split(r, me), given+c.split(me, r)
	}
	out := tensor.New(c.dtype, rows)
	err := g.AllToAllV(ctx, out, c.parts()[me].Slice(0, given), outSplits, inSplits).Wait()
	return errors.Join(err, c.equal("out", out, concat(want...)))
}

func runAllToAllList(g *ops.Group, c *cell) error {
	me := g.Rank()
	var out, in, want []tensor.Tensor
	for r := range c.n {
		in = append(in, c.parts()[me].Slice(0, c.split(me, r)))
		want = append(want, c.parts()[r].Slice(0, c.split(r, me)))
	}
	out = empty(want)
	err := g.AllToAllList(ctx, out, in).Wait()
	return errors.Join(err, c.equal("out", tensor.Of(concat(out...)), concat(want...)))
}
