package node

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"
)

// A hostile is a way to treat a listener badly. It goes on until the context ends
// or it is hung up on.
type hostile func(ctx context.Context, c net.Conn)

var hostiles = map[string]hostile{
	"half-open": func(ctx context.Context, c net.Conn) { io.Copy(io.Discard, c) },
	"garbage": func(ctx context.Context, c net.Conn) {
		for ctx.Err() == nil {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"); err != nil {
				return
			}
		}
	},
	"slow": func(ctx context.Context, c net.Conn) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for _, b := range []byte(hello + "\x07/noise\n") {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
		}
		io.Copy(io.Discard, c)
	},
	"oversized": func(ctx context.Context, c net.Conn) {
		io.WriteString(c, hello+"\xff\xff\xff\xff\x7f"+strings.Repeat("x", 1<<20))
		io.Copy(io.Discard, c)
	},
}

// attack keeps up some hostile connections to an address, each replaced when it
// ends, until stop is called.
func attack(network, address string, many int) (stop func()) {
	var all []hostile
	for _, h := range hostiles {
		all = append(all, h)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var d net.Dialer
	pace := time.NewTicker(time.Second / 20) // of those that come back
	for i := range many {
		wg.Go(func() {
			for again := false; ctx.Err() == nil; again = true {
				if again {
					select {
					case <-pace.C:
					case <-ctx.Done():
						return
					}
				}
				if c, err := d.DialContext(ctx, network, address); err == nil {
					unlink := context.AfterFunc(ctx, func() { c.Close() })
					all[i%len(all)](ctx, c)
					unlink()
					c.Close()
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
		pace.Stop()
	}
}

// attacked is attack on a node.
func attacked(t *testing.T, n *Node, many int) (stop func()) {
	t.Helper()
	network, address, err := manet.DialArgs(info(t, n).Addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	return attack(network, address, many)
}

// rounds is how long a pair takes for some round trips of a message.
func rounds(t *testing.T, s *Stream, many, size int) time.Duration {
	t.Helper()
	p := make([]byte, size)
	begin := time.Now()
	for range many {
		if _, err := s.Write(p); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, p); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// echoing starts two nodes, of which one echoes what the other sends on a stream.
func echoing(t *testing.T, c Config) (a, b *Node, s *Stream) {
	t.Helper()
	a, b = start(t, c), start(t, c)
	stop, err := a.Handle(t.Context(), "/echo", func(s *Stream) {
		defer s.Close()
		io.Copy(s, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := b.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	if s, err = b.Open(t.Context(), a.ID(), "/echo"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	rounds(t, s, 1, 1) // the other side waits ten seconds for the first bytes
	return a, b, s
}

// A hundred hostile connections at once leave memory and goroutines bounded, and
// neither the peers that are connected nor a new one notice.
func TestHostileConnections(t *testing.T) {
	const many, size, count = 100, 16 << 10, 4
	for name, secret := range map[string][]byte{"open": nil, "private": ours} {
		t.Run(name, func(t *testing.T) {
			c := Config{Transports: []string{TCP}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Secret: secret, Peers: 8}
			a, _, s := echoing(t, c)
			rounds(t, s, count, size)
			goroutines, heap := runtime.NumGoroutine(), heapSize()
			end := attacked(t, a, many)
			defer end()
			rounds(t, s, count, size)
			if got := runtime.NumGoroutine(); got > goroutines+20*many {
				t.Errorf("%d goroutines, %d before", got, goroutines)
			}
			if got := heapSize(); got > heap+64<<20 {
				t.Errorf("%d MiB in use, %d before", got>>20, heap>>20)
			}
			connect(t, start(t, c), info(t, a)) // a new member gets in, at the latest when it tries again
		})
	}
}

func heapSize() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
