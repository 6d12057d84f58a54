package trainer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// The head of an encoded state is everything but the values, little-endian:
//
//	4  "PMST"
//	4  version, 1
//	8  Step     8  Epoch     8  Consumed
//	4  length of the random state, and its bytes
//	4  number of tensors, and for each:
//	   2  length of the name, and its bytes
//	   1  element type, as tensor.DType numbers them
//	   1  number of dimensions
//	   8  each of them
//
// The body follows: the tensors' values one after the other, without gaps.
const (
	stateMagic   = "PMST"
	stateVersion = 1

	maxName = 1 << 12
	maxDims = 16
	maxHead = 256 << 20 // bytes
)

// ErrFormat is wrapped by the errors of what cannot be read as what it claims to
// be: a state, a checkpoint's manifest or shard.
var ErrFormat = errors.New("malformed")

// A head is a decoded one.
type head struct {
	Progress
	random  []byte
	tensors []described
}

// A described tensor is one without its values.
type described struct {
	name  string
	dtype tensor.DType
	shape []int
}

func (d described) String() string { return fmt.Sprintf("%q %v%v", d.name, d.dtype, d.shape) }

// head describes s as it is now.
func (s *State) head() (head, error) {
	random, err := s.random()
	h := head{Progress: s.Progress, random: random}
	for _, p := range s.all() {
		h.tensors = append(h.tensors, described{p.Name, p.Value.DType(), p.Value.Shape()})
	}
	return h, err
}

func (h head) encode() []byte {
	p := append([]byte(nil), stateMagic...)
	p = binary.LittleEndian.AppendUint32(p, stateVersion)
	for _, n := range []int64{h.Step, h.Epoch, h.Consumed} {
		p = binary.LittleEndian.AppendUint64(p, uint64(n))
	}
	p = binary.LittleEndian.AppendUint32(p, uint32(len(h.random)))
	p = append(p, h.random...)
	p = binary.LittleEndian.AppendUint32(p, uint32(len(h.tensors)))
	for _, t := range h.tensors {
		p = binary.LittleEndian.AppendUint16(p, uint16(len(t.name)))
		p = append(p, t.name...)
		p = append(p, byte(t.dtype), byte(len(t.shape)))
		for _, d := range t.shape {
			p = binary.LittleEndian.AppendUint64(p, uint64(d))
		}
	}
	return p
}

// decodeHead reads a head that may come from anywhere: it allocates no more than
// in proportion to p, and accepts exactly what encode writes.
func decodeHead(p []byte) (head, error) {
	r := reader{p: p}
	if !bytes.Equal(r.take(4), []byte(stateMagic)) {
		return head{}, fmt.Errorf("trainer: state: %w: it does not begin with %q", ErrFormat, stateMagic)
	}
	if v := r.uint32(); r.err == nil && v != stateVersion {
		return head{}, fmt.Errorf("trainer: state: version %d: this program reads %d", v, stateVersion)
	}
	h := head{Progress: Progress{Step: r.int64(), Epoch: r.int64(), Consumed: r.int64()}}
	h.random = bytes.Clone(r.takeAtMost(int64(r.uint32()), MaxRandom))
	n := r.uint32()
	if n > MaxStateTensors {
		r.fail("%d tensors: at most %d", n, MaxStateTensors)
	}
	var size int64
	for i := uint32(0); i < n && r.err == nil; i++ {
		h.tensors = append(h.tensors, r.described(&size))
	}
	if len(r.p) > 0 {
		r.fail("%d bytes after the end", len(r.p))
	}
	if r.err != nil {
		return head{}, fmt.Errorf("trainer: state: %w", r.err)
	}
	return h, nil
}

// described reads one tensor's description and adds its bytes to size.
func (r *reader) described(size *int64) described {
	d := described{name: string(r.takeAtMost(int64(r.uint16()), maxName)), dtype: tensor.DType(r.uint8())}
	dims := r.uint8()
	if r.err == nil && !d.dtype.Valid() {
		r.fail("%q has the element type %v", d.name, d.dtype)
	}
	if dims > maxDims {
		r.fail("%q has %d dimensions: at most %d", d.name, dims, maxDims)
	}
	bytes := int64(d.dtype.Size())
	d.shape = []int{}
	for i := byte(0); i < dims && r.err == nil; i++ {
		n := r.int64()
		if n > 0 && bytes > MaxStateBytes/n {
			r.fail("%q is too large", d.name)
			break
		}
		bytes *= n
		d.shape = append(d.shape, int(n))
	}
	if bytes > MaxStateBytes-*size {
		r.fail("more than %d bytes of values", int64(MaxStateBytes))
	}
	*size += bytes
	return d
}

// A reader takes little-endian numbers off bytes. After an error it yields zeros.
type reader struct {
	p   []byte
	err error
}

func (r *reader) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrFormat}, a...)...)
	}
	r.p = nil
}

// take lends the next n bytes, or zeros.
func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.p) {
		r.fail("it ends %d bytes too early", n-len(r.p))
		return make([]byte, n)
	}
	p := r.p[:n:n]
	r.p = r.p[n:]
	return p
}

// takeAtMost is take of a length that was read, and so may be anything.
func (r *reader) takeAtMost(n, most int64) []byte {
	if n > most || n > int64(len(r.p)) {
		r.fail("%d bytes where %d may be and %d are", n, most, len(r.p))
		return nil
	}
	return r.take(int(n))
}

func (r *reader) uint8() byte    { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

// int64 reads a number that may not be negative.
func (r *reader) int64() int64 {
	n := int64(binary.LittleEndian.Uint64(r.take(8)))
	if n < 0 {
		r.fail("the number %d", n)
		return 0
	}
	return n
}
