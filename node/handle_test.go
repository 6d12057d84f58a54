package node

import (
	"errors"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
)

func TestHandleOneAtATime(t *testing.T) {
	n := start(t, Config{})
	stop, err := n.Handle(t.Context(), "/x", func(s *Stream) { s.Close() })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Handle(t.Context(), "/x", nil); err == nil {
		t.Error("two handlers of one protocol")
	}
	stop()
	stop, err = n.Handle(t.Context(), "/x", func(s *Stream) { s.Close() })
	if err != nil {
		t.Errorf("after stop: %v", err)
	}
	stop()
	stop()
}

// Stop ends the streams of calls that run, and waits for the calls.
func TestStopWaits(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	entered, ended := make(chan struct{}), false
	stop, err := a.Handle(t.Context(), "/hang", func(s *Stream) {
		close(entered)
		if _, err := io.ReadAll(s); !errors.Is(err, ErrClosed) {
			t.Errorf("handler saw %v", err)
		}
		ended = true
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	s, err := b.Open(t.Context(), a.ID(), "/hang")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	if !ended {
		t.Error("stop did not wait")
	}
	if _, err := io.ReadAll(s); !errors.Is(err, ErrClosed) {
		t.Errorf("the other side: %v", err)
	}
	s.Reset(ErrClosed)
}

// Who comes for a protocol that has ended is told so, and nobody is told unasked.
func TestStoppedProtocolIsRefused(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	stop, err := a.Handle(t.Context(), "/x", func(s *Stream) { s.Close() })
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	news, err := b.Host().EventBus().Subscribe(new(event.EvtPeerProtocolsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer news.Close()
	stop()
	s, err := b.Open(t.Context(), a.ID(), "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.ReadAll(s); !errors.Is(err, ErrClosed) {
		t.Errorf("from one that has stopped: %v", err)
	}
	for range len(news.Out()) {
		if e := (<-news.Out()).(event.EvtPeerProtocolsUpdated); len(e.Removed) > 0 {
			t.Errorf("the other side was told: %v", e.Removed)
		}
	}
}

// Limits follow from the number of peers: more than libp2p's default of 75
// streams may be open at once.
func TestManyStreams(t *testing.T) {
	const many = 300
	a, b := start(t, Config{}), start(t, Config{})
	stop, err := a.Handle(t.Context(), "/many", func(s *Stream) {
		_, err := io.Copy(s, s)
		if err == nil {
			s.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := b.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	var streams []*Stream
	for range many {
		s, err := b.Open(t.Context(), a.ID(), "/many")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	for i, s := range streams {
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		s.Close()
	}
}
