package mux

import (
	"encoding/binary"
	"fmt"
)

// The kinds of frames. A frame is a head of headSize bytes and, of some kinds, a body
// of the length in the head.
const (
	frameOpen   = 1 // begins a stream; no body
	frameData   = 2 // body: 1 to maxData bytes of a stream
	frameCredit = 3 // body: how many bytes more may come, 4 bytes
	frameFin    = 4 // nothing more will come; no body
	frameReset  = 5 // the stream is broken; body: a code, 4 bytes
	frameAway   = 6 // the connection ends; stream 0; body: a code, 4 bytes
)

const (
	// headSize: kind (1 byte), length of the body (3), stream (4), little-endian.
	headSize = 8
	// maxData bounds the body of a data frame in bytes: enough to make the price of a
	// system call small, and a fraction of what a core's second cache holds.
	maxData = 128 << 10
	// codeSize is the length of every other body.
	codeSize = 4
)

// A head is what a frame begins with.
type head struct {
	kind byte
	n    int
	id   uint32
}

func (h head) append(p []byte) []byte {
	p = binary.LittleEndian.AppendUint32(p, uint32(h.kind)|uint32(h.n)<<8)
	return binary.LittleEndian.AppendUint32(p, h.id)
}

// appendCode appends a frame whose body is a number.
func appendCode(p []byte, kind byte, id, code uint32) []byte {
	return binary.LittleEndian.AppendUint32(head{kind, codeSize, id}.append(p), code)
}

// parseHead reads headSize bytes, and refuses a head that no frame has.
func parseHead(p []byte) (head, error) {
	word := binary.LittleEndian.Uint32(p)
	h := head{byte(word), int(word >> 8), binary.LittleEndian.Uint32(p[4:])}
	low, high := 0, 0
	switch h.kind {
	case frameData:
		low, high = 1, maxData
	case frameCredit, frameReset, frameAway:
		low, high = codeSize, codeSize
	case frameOpen, frameFin:
	default:
		return head{}, fmt.Errorf("mux: frame of unknown kind %d", h.kind)
	}
	if h.n < low || h.n > high {
		return head{}, fmt.Errorf("mux: frame of kind %d has %d bytes: want %d to %d", h.kind, h.n, low, high)
	}
	if (h.kind == frameAway) != (h.id == 0) {
		return head{}, fmt.Errorf("mux: frame of kind %d for stream %d", h.kind, h.id)
	}
	return h, nil
}

// A hello is what a dialler sends first on each connection.
type hello struct {
	join  bool // as a stripe of the connection that the token was first seen on
	token token
}

// A token names a connection to those who may join it with stripes. Its dialler draws
// it at random and tells it to the peer alone.
type token [32]byte

const (
	// helloSize: magic (8 bytes), join (1), token (32).
	helloSize = 8 + 1 + len(token{})
	// magic keeps what is not a muxer of this version from being taken for one.
	magic = "pmmux/1\n"
)

func (h hello) append(p []byte) []byte {
	p = append(p, magic...)
	if h.join {
		p = append(p, 1)
	} else {
		p = append(p, 0)
	}
	return append(p, h.token[:]...)
}

// parseHello reads helloSize bytes.
func parseHello(p []byte) (h hello, err error) {
	if string(p[:len(magic)]) != magic {
		return h, fmt.Errorf("mux: a hello begins with %q", p[:len(magic)])
	}
	if p[len(magic)] > 1 {
		return h, fmt.Errorf("mux: a hello joins %d connections", p[len(magic)])
	}
	h.join = p[len(magic)] == 1
	copy(h.token[:], p[len(magic)+1:])
	return h, nil
}
