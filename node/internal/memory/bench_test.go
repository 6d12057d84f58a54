package memory

import (
	"io"
	"strconv"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
)

// echoes answers every message of a size with one of that size, until the end.
func echoes(s network.MuxedStream, size int) {
	p := make([]byte, size)
	for {
		if _, err := io.ReadFull(s, p); err != nil {
			return
		}
		if _, err := s.Write(p); err != nil {
			return
		}
	}
}

// To and fro between two goroutines.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{4, 64 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			near, far := streams(b)
			go echoes(far, size)
			p := make([]byte, size)
			for b.Loop() {
				if _, err := near.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(near, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One direction, in writes and reads of 1 MiB.
func BenchmarkOneWay(b *testing.B) {
	near, far := streams(b)
	go func() { _, _ = io.CopyBuffer(onlyWriter{}, onlyReader{far}, make([]byte, 1<<20)) }() // ends with the stream
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := near.Write(p); err != nil {
			b.Fatal(err)
		}
	}
}

// onlyReader and onlyWriter keep io.CopyBuffer to its buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{}
)

func (onlyWriter) Write(p []byte) (int, error) { return len(p), nil }
