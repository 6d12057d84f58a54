package node

import (
	"context"
	"io"
	"testing"
	"time"
)

// A stream whose reader has caught up takes half a window more, however long and
// hard it was used before: credit is not lost.
func TestWindowStaysWhole(t *testing.T) {
	const proto, message, rounds = "/test/window", 180_000, 400
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, b := start(t, Config{Transports: []string{TCP}}), start(t, Config{Transports: []string{TCP}})
	caught, done := make(chan struct{}), make(chan struct{})
	if _, err := b.Handle(ctx, proto, func(s *Stream) {
		defer s.Close()
		p := make([]byte, message)
		for range rounds {
			if _, err := io.ReadFull(s, p); err != nil {
				t.Error(err)
				break
			}
			if _, err := s.Write(p[:1]); err != nil {
				t.Error(err)
				break
			}
		}
		close(caught)
		<-done // reads nothing more
	}); err != nil {
		t.Fatal(err)
	}
	defer close(done)
	if err := a.Connect(ctx, info(t, b)); err != nil {
		t.Fatal(err)
	}
	s, err := a.Open(ctx, b.ID(), proto)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := make([]byte, message)
	for range rounds {
		if _, err := s.Write(p); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, p[:1]); err != nil {
			t.Fatal(err)
		}
	}
	<-caught
	s.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if n, err := s.Write(make([]byte, Window/2)); err != nil {
		t.Errorf("half a window is %d bytes, but only %d went: %v", Window/2, n, err)
	}
}
