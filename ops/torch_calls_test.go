package ops_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// torchCalls are torch's calls, made here: they leave what torch's do.
var torchCalls = map[string]func(c *parity, g *ops.Group, o *outcome){
	"broadcast": func(c *parity, g *ops.Group, o *outcome) {
		x := c.given(o)
		o.after(g.Broadcast(ctx, x, c.Root), x)
	},
	"reduce": func(c *parity, g *ops.Group, o *outcome) {
		x := c.given(o)
		o.after(g.Reduce(ctx, x, c.op(), c.Root), x)
	},
	"all_reduce": func(c *parity, g *ops.Group, o *outcome) {
		x := c.given(o)
		o.after(g.AllReduce(ctx, x, c.op()), x)
	},
	"all_gather": func(c *parity, g *ops.Group, o *outcome) {
		x := c.given(o)
		list, out := c.parts(g, x.Len())
		o.after(g.AllGatherList(ctx, list, x), out)
		_, out = c.parts(g, x.Len())
		o.again(g.AllGather(ctx, out, x), out)
	},
	"gather":            gather,
	"scatter":           scatter,
	"all_to_all_single": allToAll,
	"all_reduce_coalesced": func(c *parity, g *ops.Group, o *outcome) {
		xs := c.list(o.rank)
		o.after(g.AllReduceCoalesced(ctx, xs, c.op()), xs...)
	},
	"all_gather_coalesced": func(c *parity, g *ops.Group, o *outcome) {
		xs := c.list(o.rank)
		outs, lists := make([]tensor.Tensor, len(xs)), make([][]tensor.Tensor, len(xs))
		for i, x := range xs {
			lists[i], outs[i] = c.parts(g, x.Len())
		}
		w := g.AllGatherCoalesced(ctx, outs, xs)
		var byRank []tensor.Tensor
		for r := range g.Size() {
			for _, list := range lists {
				byRank = append(byRank, list[r])
			}
		}
		o.after(w, byRank...)
	},
	"barrier": func(c *parity, g *ops.Group, o *outcome) {
		c.came.Add(1)
		o.err = g.Barrier(ctx).Wait()
		o.out = encode(tensor.Of([]int64{c.came.Load()}))
	},
	"monitored_barrier": func(c *parity, g *ops.Group, o *outcome) {
		if !slices.Contains(c.Late, o.rank) {
			o.err = g.MonitoredBarrier(ctx, time.Second, c.All).Wait()
		}
	},
	"broadcast_object_list": func(c *parity, g *ops.Group, o *outcome) {
		o.objects(ops.BroadcastObject(ctx, g, c.objects(o.rank), c.Root))
	},
	"scatter_object_list": func(c *parity, g *ops.Group, o *outcome) {
		o.out, o.err = ops.ScatterObject(ctx, g, c.objects(o.rank), c.Root)
	},
	"gather_object": func(c *parity, g *ops.Group, o *outcome) {
		o.objects(ops.GatherObject(ctx, g, *c.In[o.rank], c.Root))
	},
	"all_gather_object": func(c *parity, g *ops.Group, o *outcome) {
		o.objects(ops.AllGatherObject(ctx, g, *c.In[o.rank]))
	},
	"new_group": func(*parity, *ops.Group, *outcome) {}, // its place is all there is
	"p2p":       messages,
}

func gather(c *parity, g *ops.Group, o *outcome) {
	x := c.given(o)
	if !c.gives(o) {
		o.after(g.GatherList(ctx, nil, x, c.Root))
		if c.Error == nil {
			o.again(g.Gather(ctx, tensor.Tensor{}, x, c.Root))
		}
		return
	}
	list, out := c.parts(g, x.Len())
	o.after(g.GatherList(ctx, list, x, c.Root), out)
	if c.Error == nil {
		_, out = c.parts(g, x.Len())
		o.again(g.Gather(ctx, out, x, c.Root), out)
	}
}

func scatter(c *parity, g *ops.Group, o *outcome) {
	list, whole := c.list(c.Root), tensor.Tensor{}
	if len(list) == 1 {
		whole = list[0]
		n := whole.Len() / g.Size()
		list = nil
		for r := range g.Size() {
			list = append(list, whole.Slice(r*n, r*n+n))
		}
	}
	out := tensor.New(c.dtype(), list[0].Len())
	if !c.gives(o) {
		list, whole = nil, tensor.Tensor{}
	}
	o.after(g.ScatterList(ctx, out, list, c.Root), out)
	if c.Error == nil {
		out = tensor.New(c.dtype(), out.Len())
		o.again(g.Scatter(ctx, out, whole, c.Root), out)
	}
}

func allToAll(c *parity, g *ops.Group, o *outcome) {
	x := c.given(o)
	var gives, takes []int
	n := x.Len()
	if c.Split != nil {
		gives, takes, n = c.Split[o.rank][0], c.Split[o.rank][1], 0
		for _, k := range takes {
			n += k
		}
	}
	out := tensor.New(c.dtype(), n)
	o.after(g.AllToAllV(ctx, out, x, takes, gives), out)
	if c.Error != nil {
		return
	}
	out = tensor.New(c.dtype(), n)
	if c.Split == nil {
		o.again(g.AllToAll(ctx, out, x), out)
		return
	}
	o.again(g.AllToAllList(ctx, cut(out, takes), cut(x, gives)), out)
}

// cut is successive parts of x.
func cut(x tensor.Tensor, counts []int) (parts []tensor.Tensor) {
	for _, n := range counts {
		parts = append(parts, x.Slice(0, n))
		x = x.Slice(n, x.Len())
	}
	return parts
}

// messages takes the steps of a rank's program.
func messages(c *parity, g *ops.Group, o *outcome) {
	var got []tensor.Tensor
	var batch []ops.P2P
	var works, receives []*ops.Work
	for _, s := range c.Steps[o.rank] {
		verb, p := c.step(s)
		if !p.Send {
			got = append(got, p.X)
		}
		if c.Batch {
			batch = append(batch, p)
			continue
		}
		w := post(g, p)
		works = append(works, w)
		if !p.Send {
			receives = append(receives, w)
		}
		if verb == "send" || verb == "recv" {
			<-w.Done()
		}
	}
	if c.Batch {
		works = append(works, g.Batch(ctx, batch))
	}
	for _, w := range works {
		o.err = errors.Join(o.err, w.Wait())
	}
	for _, w := range receives {
		o.source = append(o.source, w.Source())
	}
	o.out = encode(got...)
}

// step reads a step: VERB PEER TAG, and what is sent or how much is received.
func (c *parity) step(s string) (verb string, p ops.P2P) {
	fields := strings.Fields(s)
	p = ops.P2P{Send: strings.HasSuffix(fields[0], "send"), Peer: -1, Tag: uint32(number(fields[2]))}
	if fields[1] != "any" {
		p.Peer = number(fields[1])
	}
	if p.Send {
		p.X = decode(c.dtype(), strings.Join(fields[3:], " "))
	} else {
		p.X = tensor.New(c.dtype(), number(fields[3]))
	}
	return fields[0], p
}

func post(g *ops.Group, p ops.P2P) *ops.Work {
	switch {
	case p.Send:
		return g.Isend(ctx, p.X, p.Peer, p.Tag)
	case p.Peer < 0:
		return g.IrecvAny(ctx, p.X, p.Tag)
	}
	return g.Irecv(ctx, p.X, p.Peer, p.Tag)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// given is what a rank gives to the call.
func (c *parity) given(o *outcome) tensor.Tensor {
	return decode(c.dtype(), text(at(c.In, o.rank)))
}

// list are the tensors that a rank gives.
func (c *parity) list(rank int) (list []tensor.Tensor) {
	for s := range strings.SplitSeq(text(at(c.In, rank)), "|") {
		list = append(list, decode(c.dtype(), s))
	}
	return list
}

// objects are the objects that a rank gives, nil if it gives none.
func (c *parity) objects(rank int) []string {
	if c.In[rank] == nil {
		return nil
	}
	return strings.Split(*c.In[rank], " | ")
}

func (o *outcome) objects(got []string, err error) { o.out, o.err = strings.Join(got, " | "), err }

// gives reports whether a rank gives gather or scatter what only the root is to give.
func (c *parity) gives(o *outcome) bool {
	if c.List != nil {
		return *c.List
	}
	return o.rank == c.Root
}

// parts is a tensor with room for n elements of every rank, and its parts.
func (c *parity) parts(g *ops.Group, n int) (list []tensor.Tensor, whole tensor.Tensor) {
	whole = tensor.New(c.dtype(), g.Size()*n)
	return cut(whole, slices.Repeat([]int{n}, g.Size())), whole
}

func (c *parity) dtype() tensor.DType {
	for t := tensor.DType(1); t.Valid(); t++ {
		if t.String() == c.DType {
			return t
		}
	}
	panic("no type " + c.DType)
}

func (c *parity) op() tensor.Op {
	for _, op := range []tensor.Op{tensor.Sum, tensor.Product, tensor.Min, tensor.Max, tensor.BitAnd, tensor.BitOr, tensor.BitXor} {
		if op.String() == c.Op {
			return op
		}
	}
	panic("no op " + c.Op)
}
