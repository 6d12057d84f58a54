package ops

import (
	"fmt"
	"sync"
	"unsafe"

	"peermesh/ops/tensor"
)

const (
	// tileElements is about how many elements are decoded at a time: what was decoded is
	// folded while it is in the nearest cache.
	tileElements = 4096
	// stripes are the locks of a coding. A chunk that goes to several ranks at once is
	// encoded by who comes first; lanes, which are far apart, do not wait for each other.
	stripes = 64
)

type real interface{ float32 | float64 }

// The state of a block.
const (
	isRaw   = iota // the elements count, the bytes do not
	isCoded        // the bytes count: of what was sent, or is being
	isBoth         // the elements are what the bytes decode to
	isOwn          // the same of this rank's part, which was sent: others' are folded into it
)

// A coding is a tensor as memory of encoded blocks, for which the executor moves bytes
// and does not know that they stand for floats. To read a block is to encode its
// elements, once; to write one is to keep its bytes, for whoever reads it next, and to
// decode them; to reduce into one is to decode and fold.
//
// It rests on what a schedule's test has shown: no rank folds into a block that it has
// sent, or sends a part twice. Where all send their parts to all instead, and each adds
// all of them up, a rank's own becomes what the others decode of it (isOwn), and is folded
// into then.
type coding[T real] struct {
	codec       Codec
	encode      func(Codec, []byte, []T)
	decode      func(Codec, []T, []byte)
	x           tensor.Tensor
	elems, lost []T  // x's, and Coding's; the latter may be nil
	sent        byte // the state of a block that was raw and is sent: isCoded, or isOwn
	mine        byte // that of one that others' parts are folded into: isRaw, or isOwn

	per, size int    // elements and bytes of a block
	blocks    int    // of all
	tile      int    // blocks that are decoded at a time
	stripe    int    // blocks of one lock
	lent      []byte // what store and state are in
	store     []byte // the blocks' bytes; of a raw one, those that have come to be folded in
	state     []byte // by block

	locks [stripes]sync.Mutex // of encoding
}

// newCoding is for one collective; oneShot says that in it all send to all.
func newCoding[T real](x tensor.Tensor, c Coding, oneShot bool, encode func(Codec, []byte, []T), decode func(Codec, []T, []byte)) *coding[T] {
	k := &coding[T]{codec: c.Codec, encode: encode, decode: decode, x: x, sent: isCoded, mine: isRaw}
	if oneShot {
		k.sent, k.mine = isOwn, isOwn
	}
	k.elems, _ = tensor.Data[T](x) // as Coding.check has seen
	k.lost, _ = tensor.Data[T](c.Lost)
	k.per, k.size = c.Codec.Block()
	k.blocks = (len(k.elems) + k.per - 1) / k.per
	k.tile = max(1, tileElements/k.per)
	k.stripe = k.blocks/stripes + 1
	n := k.blocks * k.size
	k.lent = scratch.get(int64(n + k.blocks))
	k.store, k.state = k.lent[:n], k.lent[n:]
	clear(k.state)
	return k
}

// close gives the room back.
func (k *coding[T]) close() { scratch.put(k.lent) }

// layout cuts into chunks and lanes at the bounds of blocks.
func (k *coding[T]) layout(chunks, lanes int) layout {
	l := layout{x: tensor.In(k, tensor.Uint8, len(k.store)), chunks: chunks, lanes: lanes, elem: int64(k.size)}
	l.bounds = make([]int, chunks+1)
	for c := range chunks {
		_, l.bounds[c+1] = share(k.blocks, c, chunks)
	}
	return l
}

// finish decodes what this rank has encoded for all, itself included.
func (k *coding[T]) finish() error {
	for b, end := 0, 0; b < k.blocks; b = end {
		end = min(b+k.tile, k.blocks)
		for i := b; i < end; i++ {
			switch k.state[i] {
			case isRaw:
				return fmt.Errorf("ops: block %d of %d was never sent, nor received", i, k.blocks)
			case isCoded:
				k.decode(k.codec, k.of(i, i+1), k.bytes(i, i+1))
			}
		}
	}
	return nil
}

// of is the elements of blocks [a, b), and bytes is their bytes.
func (k *coding[T]) of(a, b int) []T       { return k.elems[a*k.per : min(b*k.per, len(k.elems))] }
func (k *coding[T]) bytes(a, b int) []byte { return k.store[a*k.size : b*k.size] }

// View encodes what is raw of the blocks that it lends.
func (k *coding[T]) View(off, n int64) []byte {
	if k.inRange(off, n) != nil {
		return nil
	}
	size := int64(k.size)
	first, last := int(off/size), int((off+n+size-1)/size)
	for first < last {
		s := first / k.stripe
		end := min(last, (s+1)*k.stripe)
		k.locks[s].Lock()
		k.encodeRaw(first, end)
		k.locks[s].Unlock()
		first = end
	}
	return k.store[off : off+n : off+n]
}

// encodeRaw encodes the blocks of [a, b) that are raw, neighbours together.
func (k *coding[T]) encodeRaw(a, b int) {
	for a < b {
		if k.state[a] != isRaw {
			a++
			continue
		}
		end := a
		for end < min(b, a+k.tile) && k.state[end] == isRaw {
			k.state[end] = k.sent
			end++
		}
		x, p := k.of(a, end), k.bytes(a, end)
		k.encode(k.codec, p, x)
		if k.lost != nil {
			lost := k.lost[a*k.per:][:len(x)]
			k.decode(k.codec, lost, p)
			tensor.Residual(lost, x)
		}
		if k.sent == isOwn {
			k.decode(k.codec, x, p)
		}
		a = end
	}
}

// ReadAt copies what View lends.
func (k *coding[T]) ReadAt(p []byte, off int64) (int, error) {
	if err := k.inRange(off, int64(len(p))); err != nil {
		return 0, err
	}
	return copy(p, k.View(off, int64(len(p)))), nil
}

// WriteAt takes the bytes of blocks. Those of one come in order, if not together.
func (k *coding[T]) WriteAt(p []byte, off int64) (int, error) {
	if err := k.inRange(off, int64(len(p))); err != nil {
		return 0, err
	}
	copy(k.store[off:], p)
	k.each(off, len(p), func(a, b int) error {
		k.decode(k.codec, k.of(a, b), k.bytes(a, b))
		for i := a; i < b; i++ {
			k.state[i] = isBoth
		}
		return nil
	})
	return len(p), nil
}

// ReduceAt decodes the bytes of blocks and folds them in. The type is that of the bytes.
func (k *coding[T]) ReduceAt(p []byte, off int64, _ tensor.DType, op tensor.Op) error {
	if err := k.inRange(off, int64(len(p))); err != nil {
		return err
	}
	copy(k.store[off:], p)
	room := scratch.get(int64(k.tile*k.per) * k.width())
	defer scratch.put(room)
	return k.each(off, len(p), func(a, b int) error {
		if k.state[a] != k.mine {
			return fmt.Errorf("ops: a part for block %d, which is in state %d: want %d", a, k.state[a], k.mine)
		}
		decoded := k.decoded(room, a, b, k.bytes(a, b))
		return k.x.ReduceAt(decoded, int64(a*k.per)*k.width(), op)
	})
}

// decoded is the elements that p has of blocks [a, b), as bytes in room.
func (k *coding[T]) decoded(room []byte, a, b int, p []byte) []byte {
	n := len(k.of(a, b))
	k.decode(k.codec, unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(room))), n), p)
	return room[:int64(n)*k.width()]
}

// each yields, tile by tile, the blocks that are complete once bytes [off, off+n) of the
// store are there.
func (k *coding[T]) each(off int64, n int, f func(a, b int) error) error {
	for a, last := int(off)/k.size, (int(off)+n)/k.size; a < last; {
		b := min(a+k.tile, last)
		if err := f(a, b); err != nil {
			return err
		}
		a = b
	}
	return nil
}

// A gatherer adds up what several ranks have sent for one chunk.
type gatherer interface {
	// gather folds the parts that came for bytes [off, off+n), each n bytes, by a crowd's
	// steps: every part is the second of one of them, save this rank's own.
	gather(c *crowd, off, n int64, came func(part) []byte, op tensor.Op) error
}

func (k *coding[T]) gather(c *crowd, off, n int64, came func(part) []byte, op tensor.Op) error {
	first, last := int(off)/k.size, int(off+n)/k.size
	tile := int64(k.tile*k.per) * k.width()
	room := scratch.get(int64(len(c.steps)) * tile)
	defer scratch.put(room)
	for a := first; a < last; a += k.tile {
		b := min(a+k.tile, last)
		at := int64(a*k.per) * k.width()
		part := func(i int) []byte { return room[int64(i)*tile:][:tile] }
		size := 0
		for i, s := range c.steps {
			size = len(k.decoded(part(i), a, b, came(s[1])[(a-first)*k.size:(b-first)*k.size]))
		}
		for i, s := range c.steps {
			var err error
			if s[0].slot < 0 {
				err = k.x.ReduceAt(part(i)[:size], at, op)
			} else {
				err = tensor.Host(part(second(c, s[0].slot))[:size]).ReduceAt(part(i)[:size], 0, k.x.DType(), op)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// second is the step whose second part is held in that slot.
func second(c *crowd, slot int) int {
	for i, s := range c.steps {
		if s[1].slot == slot {
			return i
		}
	}
	panic("ops: a part that no step folds away") // the rank's own is the last, see crowd
}

func (k *coding[T]) width() int64 { return int64(unsafe.Sizeof(T(0))) }

func (k *coding[T]) inRange(off, n int64) error {
	if size := int64(len(k.store)); off < 0 || n < 0 || off > size || n > size-off {
		return &tensor.RangeError{Off: off, N: n, Size: size}
	}
	return nil
}
