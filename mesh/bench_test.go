package mesh

import (
	"fmt"
	"iter"
	"testing"
)

var benchmarked = []struct{ name, listen string }{
	{"tcp", loopback},
	{"quic", "/ip4/127.0.0.1/udp/0/quic-v1"},
}

// one yields p in one piece.
func one(p []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield(p, nil) }
}

func acceptAny([tagSize]byte, int64) error { return nil }
func landNowhere([]byte) error             { return nil }

// BenchmarkRoundTrip is a message of some bytes there and one of as many back.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range benchmarked {
		for _, size := range []int{4, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", c.name, size), func(b *testing.B) {
				p := formOn(b, 2, Config{}, c.listen)
				data := make([]byte, size)
				b.ReportAllocs()
				b.ResetTimer()
				each(b, 2, func(rank int) error {
					w, other := p.worlds[rank], 1-rank
					for i := range 2 * b.N {
						if i%2 == rank {
							if err := w.Send(b.Context(), other, 0, tagged(0), int64(size), one(data)); err != nil {
								return err
							}
						} else if err := w.Recv(b.Context(), other, 0, acceptAny, landNowhere); err != nil {
							return err
						}
					}
					return nil
				})
				b.StopTimer()
			})
		}
	}
}

// BenchmarkStream is messages of 16 MiB one way on one lane.
func BenchmarkStream(b *testing.B) {
	const size = 16 << 20
	for _, c := range benchmarked {
		b.Run(c.name, func(b *testing.B) {
			p := formOn(b, 2, Config{}, c.listen)
			data := make([]byte, size)
			b.SetBytes(size)
			b.ResetTimer()
			each(b, 2, func(rank int) error {
				for range b.N {
					var err error
					if rank == 0 {
						err = p.worlds[0].Send(b.Context(), 1, 0, tagged(0), size, one(data))
					} else {
						err = p.worlds[1].Recv(b.Context(), 0, 0, acceptAny, landNowhere)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			b.StopTimer()
		})
	}
}
