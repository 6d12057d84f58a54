package node

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// An unmodified libp2p host and a node talk to each other, whoever dials, over each of
// the node's transports that such a host has, and whatever security it would have.
func TestStockHost(t *testing.T) {
	for name, listen := range map[string]string{TCP: "/ip4/127.0.0.1/tcp/0", QUIC: "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			stock, err := libp2p.New(libp2p.ListenAddrStrings(listen))
			if err != nil {
				t.Fatal(err)
			}
			defer stock.Close()
			stock.SetStreamHandler("/echo", func(s network.Stream) {
				_, _ = io.Copy(s, s) // the other side sees what is missing
				_ = s.Close()
			})
			n := start(t, Config{Listen: []string{listen}, Transports: []string{name}})
			stop, err := n.Handle(t.Context(), "/echo", func(s *Stream) {
				defer s.Close()
				if _, err := io.Copy(s, s); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if err := stock.Connect(t.Context(), info(t, n)); err != nil {
				t.Fatal(err)
			}
			theirs, err := stock.NewStream(t.Context(), n.ID(), "/echo")
			if err != nil {
				t.Fatal(err)
			}
			echoes(t, theirs)

			other := start(t, Config{Listen: []string{listen}, Transports: []string{name}}) // which dials
			if err := other.Connect(t.Context(), peer.AddrInfo{ID: stock.ID(), Addrs: stock.Addrs()}); err != nil {
				t.Fatal(err)
			}
			ours, err := other.Open(t.Context(), stock.ID(), "/echo")
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			echoes(t, ours)
		})
	}
}

// echoes sends more than a window holds and reads it back, up to the half-close.
func echoes(t *testing.T, s interface {
	io.ReadWriter
	CloseWrite() error
}) {
	t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), 3*Window/16)
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
}
