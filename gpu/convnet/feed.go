package convnet

import (
	"errors"
	"iter"
	"slices"

	"peermesh/gpu"
	"peermesh/ops/tensor"
	"peermesh/trainer/nn"
)

// pixels is what a sample has.
const pixels = nn.Side * nn.Side

// A feed brings batches to the device on a stream of its own, from pinned memory, while the
// device computes with the one before: there are two slots, taken in turns.
type feed struct {
	s     *gpu.Stream
	slots [2]slot
	turn  int
	ahead int // samples of a batch that is on its way to the next slot; 0: none is
}

// A slot is a batch on its way, and what has become of it.
type slot struct {
	x, y   *gpu.Pinned // pixels, labels
	dx, dy *gpu.Memory // the same on the device
	copied *gpu.Event  // they are there
	used   *gpu.Event  // nothing computes with them any more

	scores *gpu.Memory // losses, float64, and then whether labels were found, uint32
	out    *gpu.Pinned // the same on the host
	scored *gpu.Event  // they are there
}

// reserve makes room for batches. What was on its way is not any more.
func (f *feed) reserve(all *stock, n int) {
	f.ahead = 0
	for i := range f.slots {
		f.slots[i] = slot{
			x: all.pinned(n*pixels, 4), y: all.pinned(n, 1), dx: all.memory(n*pixels, 4), dy: all.memory(n, 1),
			copied: all.event(), used: all.event(),
			scores: all.memory(n, 8+4), out: all.pinned(n, 8+4), scored: all.event(),
		}
	}
}

// fill has a batch set out for the next slot, which has room for it. Samples are dealt shard
// by shard, as nn does it. The host waits for no more than the copy of the last batch but one.
func (f *feed) fill(b nn.Batch, shards int) error {
	s := &f.slots[f.turn]
	f.ahead = 0
	if err := s.copied.Sync(); err != nil {
		return err
	}
	xs, ys := s.host()
	for to, from := range dealt(len(b.Y), shards) {
		copy(pixelsOf(xs, to), pixelsOf(b.X, from))
		ys[to] = b.Y[from]
	}
	err := errors.Join(f.s.Wait(s.used),
		f.s.ToDeviceN(s.dx, 0, s.x, 4*len(b.X)), f.s.ToDeviceN(s.dy, 0, s.y, len(b.Y)), f.s.Record(s.copied))
	if err == nil {
		f.ahead = len(b.Y)
	}
	return err
}

// put is the slot of a batch, which what p queues from here on waits for. If the batch is the
// one that is on its way already, to the bit, nothing more is copied.
func (f *feed) put(p *program, b nn.Batch, shards int) *slot {
	s := &f.slots[f.turn]
	if !f.holds(b, shards) {
		p.try(func() error { return f.fill(b, shards) })
	}
	f.ahead, f.turn = 0, 1-f.turn
	p.try(func() error { return p.s.Wait(s.copied) })
	return s
}

// holds is whether a batch is the one on its way. To look at all of it takes less than to copy
// it, and asks nothing of who reuses a batch's memory.
func (f *feed) holds(b nn.Batch, shards int) bool {
	if f.ahead != len(b.Y) {
		return false
	}
	xs, ys := f.slots[f.turn].host()
	for to, from := range dealt(len(b.Y), shards) {
		if ys[to] != b.Y[from] || !slices.Equal(pixelsOf(xs, to), pixelsOf(b.X, from)) {
			return false
		}
	}
	return true
}

// host is a slot's pinned memory.
func (s *slot) host() (xs []float32, ys []uint8) {
	return elements[float32](s.x, tensor.Float32), s.y.Bytes()
}

// dealt are the places to which n samples go and those from which they come, shard by shard.
func dealt(n, shards int) iter.Seq2[int, int] {
	return func(yield func(to, from int) bool) {
		to := 0
		for s := range shards {
			for from := s; from < n; from, to = from+shards, to+1 {
				if !yield(to, from) {
					return
				}
			}
		}
	}
}

// pixelsOf are those of sample i.
func pixelsOf(x []float32, i int) []float32 { return x[i*pixels : (i+1)*pixels] }

// score queues the losses of n samples, of what the last stage says, their gradients, and
// their way to the host.
func (s *slot) score(p *program, top *stage, n int) {
	p.run("likelihood", n, []gpu.Argument{start(top.dy), start(s.scores), gpu.At(s.scores, 8*int64(n)), start(top.y), start(s.dy)}, nn.Classes)
	p.try(func() error { return p.s.ToHostN(s.out, s.scores, 0, (8+4)*n) })
	p.try(func() error { return p.s.Record(s.scored) })
}

// collect waits for what score has queued: the sum of the losses, and how many labels were
// found.
func (s *slot) collect(n int) (loss float64, correct int, err error) {
	if err := s.scored.Sync(); err != nil {
		return 0, 0, err
	}
	for _, l := range elements[float64](s.out, tensor.Float64)[:n] {
		loss += l
	}
	for _, c := range elements[uint32](s.out, tensor.Uint32)[2*n : 3*n] {
		correct += int(c)
	}
	return loss, correct, nil
}
