//go:build linux && (amd64 || arm64)

package shm

import (
	"io"
	"strconv"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
)

// echoes answers every message of a size with one of that size.
func echoes(s network.MuxedStream, size int) {
	b := make([]byte, size)
	for {
		if _, err := io.ReadFull(s, b); err != nil {
			return
		}
		if _, err := s.Write(b); err != nil {
			return
		}
	}
}

// The other end of every benchmark is another process.

func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{4, 64 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			_, s := startChild(b, "echo"+strconv.Itoa(size)).dial(b)
			p := make([]byte, size)
			for b.Loop() {
				if _, err := s.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(s, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One direction, in writes and reads of 1 MiB.
func BenchmarkOneWay(b *testing.B) {
	_, s := startChild(b, "sink").dial(b)
	p := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := s.Write(p); err != nil {
			b.Fatal(err)
		}
	}
}

// Both directions at once; the rate is that of each.
func BenchmarkBothWays(b *testing.B) {
	_, s := startChild(b, "both").dial(b)
	go flood(s)
	q := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := io.ReadFull(s, q); err != nil {
			b.Fatal(err)
		}
	}
	_ = s.Reset()
}
