package simlink

import "sync"

// packs are the places of packets that have been read. Much of what a short test
// allocates would else be these.
var packs = sync.Pool{New: func() any { return new([PacketSize]byte) }}

// smallPack is up to how many bytes are a packet with a place of their size.
const smallPack = 512

// pack appends more to a packet, up to PacketSize bytes in all.
func pack(p, more []byte) []byte {
	if n := len(p) + len(more); n <= max(cap(p), smallPack) {
		return append(p, more...)
	}
	q := append(packs.Get().(*[PacketSize]byte)[:0], p...)
	return append(q, more...)
}

// unpack takes the place of a packet back, of which nobody will read any more. One that
// was cut in two, where the other side had no room for it, is let go.
func unpack(p []byte) {
	if cap(p) == PacketSize {
		packs.Put((*[PacketSize]byte)(p[:PacketSize]))
	}
}
