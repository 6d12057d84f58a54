package convnet

import (
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

// reserve makes room for batches.
func (f *feed) reserve(all *stock, n int) {
	for i := range f.slots {
		f.slots[i] = slot{
			x: all.pinned(n*pixels, 4), y: all.pinned(n, 1), dx: all.memory(n*pixels, 4), dy: all.memory(n, 1),
			copied: all.event(), used: all.event(),
			scores: all.memory(n, 8+4), out: all.pinned(n, 8+4), scored: all.event(),
		}
	}
}

// put queues a batch's way, which what p queues from here on waits for. Samples are dealt
// shard by shard, as nn does it. The host waits for no more than the copy of the last batch
// but one.
func (f *feed) put(p *program, b nn.Batch, shards int) *slot {
	s := &f.slots[f.turn]
	f.turn = 1 - f.turn
	p.try(s.copied.Sync)
	if p.err != nil {
		return s
	}
	deal(b, shards, elements[float32](s.x, tensor.Float32), s.y.Bytes())
	p.try(func() error { return f.s.Wait(s.used) })
	p.try(func() error { return f.s.ToDeviceN(s.dx, 0, s.x, 4*len(b.X)) })
	p.try(func() error { return f.s.ToDeviceN(s.dy, 0, s.y, len(b.Y)) })
	p.try(func() error { return f.s.Record(s.copied) })
	p.try(func() error { return p.s.Wait(s.copied) })
	return s
}

// deal puts a batch's samples shard by shard.
func deal(b nn.Batch, shards int, xs []float32, ys []uint8) {
	to := 0
	for s := range shards {
		for i := s; i < len(b.Y); i += shards {
			copy(xs[to*pixels:], b.X[i*pixels:(i+1)*pixels])
			ys[to] = b.Y[i]
			to++
		}
	}
}

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
