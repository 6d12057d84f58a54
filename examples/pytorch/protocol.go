package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"peermesh/ops/tensor"
)

const (
	version = 1

	// maxFrame bounds a frame, and so what is allocated by a length's word.
	maxFrame = 4096
	// maxShared bounds the memory that a program may ask for, in bytes.
	maxShared = 8 << 30
)

// What a frame is, in its first byte.
const (
	kindHello     = 'H'
	kindShare     = 'S'
	kindReduce    = 'R'
	kindBroadcast = 'B'
	kindBarrier   = 'W'

	kindOK    = 'K'
	kindError = 'E'
)

// What a reduction does, by its number.
const (
	opSum = iota
	opAverage
	opMin
	opMax
	reductions // how many there are
)

// A request is what a program asks. Which fields mean something depends on its kind.
type request struct {
	kind  byte
	dtype tensor.DType
	op    uint8
	src   uint32
	n     uint64 // bytes to share, or elements; of a hello, the version
}

// sizes are the lengths of requests, by kind.
var sizes = map[byte]int{kindHello: 5, kindShare: 9, kindReduce: 11, kindBroadcast: 14, kindBarrier: 1}

// decode reads a request. Its numbers are within their bounds, so that what they count
// cannot overflow; whether there is memory for them is not known here.
func decode(p []byte) (request, error) {
	if len(p) == 0 {
		return request{}, errors.New("an empty request")
	}
	r := request{kind: p[0]}
	switch want, known := sizes[r.kind]; {
	case !known:
		return request{}, fmt.Errorf("a request of the unknown kind %q", r.kind)
	case len(p) != want:
		return request{}, fmt.Errorf("a request %q of %d bytes, want %d", r.kind, len(p), want)
	}
	le := binary.LittleEndian
	switch r.kind {
	case kindHello:
		r.n = uint64(le.Uint32(p[1:]))
		if r.n != version {
			return request{}, fmt.Errorf("version %d of the protocol, want %d", r.n, version)
		}
	case kindShare:
		r.n = le.Uint64(p[1:])
		if r.n == 0 || r.n > maxShared {
			return request{}, fmt.Errorf("%d bytes to share, want 1 to %d", r.n, uint64(maxShared))
		}
	case kindReduce:
		r.dtype, r.op, r.n = tensor.DType(p[1]), p[2], le.Uint64(p[3:])
		if r.op >= reductions {
			return request{}, fmt.Errorf("the unknown reduction %d", r.op)
		}
	case kindBroadcast:
		r.dtype, r.src, r.n = tensor.DType(p[1]), le.Uint32(p[2:]), le.Uint64(p[6:])
		if r.src > math.MaxInt32 {
			return request{}, fmt.Errorf("a broadcast from rank %d", r.src)
		}
	}
	if r.kind == kindReduce || r.kind == kindBroadcast {
		if !r.dtype.Valid() {
			return request{}, fmt.Errorf("the unknown element type %d", r.dtype)
		}
		if r.n == 0 || r.n > maxShared/uint64(r.dtype.Size()) {
			return request{}, fmt.Errorf("%d elements of %v, want 1 to %d bytes of them", r.n, r.dtype, uint64(maxShared))
		}
	}
	return r, nil
}

// encode is the reverse of decode.
func (r request) encode() []byte {
	le, p := binary.LittleEndian, []byte{r.kind}
	switch r.kind {
	case kindHello:
		p = le.AppendUint32(p, uint32(r.n))
	case kindShare:
		p = le.AppendUint64(p, r.n)
	case kindReduce:
		p = le.AppendUint64(append(p, byte(r.dtype), r.op), r.n)
	case kindBroadcast:
		p = le.AppendUint64(le.AppendUint32(append(p, byte(r.dtype)), r.src), r.n)
	}
	return p
}

// frame puts a length before a payload of 1 to maxFrame bytes.
func frame(payload []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// failure is the last answer.
func failure(err error) []byte {
	text := err.Error()
	return frame(append([]byte{kindError}, text[:min(len(text), maxFrame-1)]...))
}

// readFrame reads a frame's payload, after its first byte, which has been read already.
func readFrame(first byte, r io.Reader) ([]byte, error) {
	head := [4]byte{first}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return nil, cut(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes, want 1 to %d", n, maxFrame)
	}
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	return p, cut(err)
}

// cut is what an end in the middle of a frame is.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
