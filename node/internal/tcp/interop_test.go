package tcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	stock "github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"peermesh/node/internal/tcp"
)

const echo = "/tcp-test/echo"

// newHost is a host that echoes, on our transport or on libp2p's own.
func newHost(t *testing.T, ours bool, more ...libp2p.Option) host.Host {
	t.Helper()
	options := append(more, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.DisableMetrics(),
		libp2p.ResourceManager(&network.NullResourceManager{}))
	if ours {
		options = append(options, libp2p.Transport(tcp.New), libp2p.Muxer(yamux.ID, tcp.Batch(yamux.DefaultTransport)))
	} else {
		options = append(options, libp2p.Transport(stock.NewTCPTransport), libp2p.Muxer(yamux.ID, yamux.DefaultTransport))
	}
	h, err := libp2p.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.SetStreamHandler(echo, func(s network.Stream) {
		if _, err := io.Copy(s, s); err != nil {
			_ = s.ResetWithError(7)
			return
		}
		_ = s.Close() // its peer sees the end in any case
	})
	return h
}

func open(t *testing.T, from, to host.Host) network.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := from.Connect(ctx, peer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}); err != nil {
		t.Fatal(err)
	}
	s, err := from.NewStream(ctx, to.ID(), echo)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return s
}

// roundTrip sends more than any window holds and reads it back, up to the half-close.
func roundTrip(t *testing.T, s network.Stream) {
	t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	sent := make(chan error, 1)
	go func() {
		_, err := s.Write(data)
		sent <- errors.Join(err, s.CloseWrite())
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(data), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ours and an unmodified libp2p host talk, whoever dials, over each security layer and
// inside a private network.
func TestStockPeers(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	for name, option := range map[string]libp2p.Option{
		"tls":     libp2p.Security(libp2ptls.ID, libp2ptls.New),
		"noise":   libp2p.Security(noise.ID, noise.New),
		"private": libp2p.ChainOptions(libp2p.PrivateNetwork(secret), libp2p.Security(noise.ID, noise.New)),
	} {
		for _, dial := range []struct {
			name     string
			from, to bool
		}{{"ours to stock", true, false}, {"stock to ours", false, true}, {"ours to ours", true, true}} {
			t.Run(name+"/"+dial.name, func(t *testing.T) {
				roundTrip(t, open(t, newHost(t, dial.from, option), newHost(t, dial.to, option)))
			})
		}
	}
}

// Deadlines, resets and their codes come through.
func TestEnds(t *testing.T) {
	a, b := newHost(t, true), newHost(t, false)
	s := open(t, a, b)
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 8)
	if n, err := s.Read(p); n != 1 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	if err := s.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) && !isTimeout(err) {
		t.Errorf("Read after the deadline: %v", err)
	}

	codes := make(chan error, 1)
	b.SetStreamHandler("/tcp-test/reset", func(s network.Stream) {
		_, err := io.ReadAll(s)
		codes <- err
	})
	r, err := a.NewStream(context.Background(), b.ID(), "/tcp-test/reset")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := r.ResetWithError(42); err != nil {
		t.Fatal(err)
	}
	if err := <-codes; !errors.Is(err, &network.StreamError{ErrorCode: 42, Remote: true}) {
		t.Errorf("the other side read %v", err)
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
