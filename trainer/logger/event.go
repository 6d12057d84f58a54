package logger

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"slices"
)

// fileVersion is what the first event of a file says.
const fileVersion = "brain.Event:2"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of a record's part. A CRC of bytes that contain CRCs is prone
// to collisions, hence the mask (tensorflow/core/lib/hash/crc32c.h).
func masked(p []byte) uint32 {
	crc := crc32.Checksum(p, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// appendRecord frames data (tensorflow/core/lib/io/record_writer.h).
func appendRecord(to, data []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint64(to, uint64(len(data)))
	to = binary.LittleEndian.AppendUint32(to, masked(to[at:]))
	to = append(to, data...)
	return binary.LittleEndian.AppendUint32(to, masked(data))
}

// The wire types of protocol buffers that events need.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func appendTag(to []byte, field, wire int) []byte { return append(to, byte(field<<3|wire)) }

func appendDouble(to []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(to, field, wire64), math.Float64bits(v))
}

func appendFloat(to []byte, field int, v float32) []byte {
	return binary.LittleEndian.AppendUint32(appendTag(to, field, wire32), math.Float32bits(v))
}

func appendInt(to []byte, field int, v int64) []byte {
	return binary.AppendUvarint(appendTag(to, field, wireVarint), uint64(v))
}

func appendBytes[T ~string | ~[]byte](to []byte, field int, v T) []byte {
	to = binary.AppendUvarint(appendTag(to, field, wireBytes), uint64(len(v)))
	return append(to, v...)
}

// versionEvent begins a file.
func versionEvent(seconds float64) []byte {
	return appendBytes(appendDouble(nil, 1, seconds), 3, fileVersion)
}

// scalarEvent is a step's metrics, in the order of their names. A proto3 encoder leaves
// out a step of 0.
func scalarEvent(seconds float64, step int64, metrics map[string]float64) []byte {
	var summary []byte
	for _, name := range sorted(metrics) {
		value := appendFloat(appendBytes(nil, 1, name), 2, float32(metrics[name]))
		summary = appendBytes(summary, 1, value)
	}
	e := appendDouble(nil, 1, seconds)
	if step != 0 {
		e = appendInt(e, 2, step)
	}
	return appendBytes(e, 5, summary)
}

// sorted is the names, in order.
func sorted(metrics map[string]float64) []string {
	return slices.Sorted(maps.Keys(metrics))
}
