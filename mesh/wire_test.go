package mesh

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"peermesh/node"
)

// A member that never beats is silent, though its connection stands.
func TestSilentPuppet(t *testing.T) {
	_, w, _, control := proposedWorld(t, Config{Silence: minSilence})
	if err := ended(w, 0, ErrSilent); err != nil {
		t.Error(err)
	}
	// It is told so, in case it is only slow.
	e := readEnd(t, control, w.roster)
	if e.Rank != 0 || !errors.Is(e, ErrSilent) {
		t.Errorf("told %v", e)
	}
}

// readEnd reads control frames up to an end.
func readEnd(t *testing.T, s io.Reader, r roster) *EndedError {
	t.Helper()
	kind, p := readFrame(t, s)
	for kind == frameBeat || kind == frameStand {
		kind, p = readFrame(t, s)
	}
	if kind != frameEnd {
		t.Fatalf("frame of kind %d, want an end", kind)
	}
	e, err := decodeEnd(p, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func readFrame(t *testing.T, s io.Reader) (kind uint8, payload []byte) {
	t.Helper()
	head, err := readFull(s, controlHead)
	if err != nil {
		t.Fatal(err)
	}
	payload, err = readFull(s, int(binary.LittleEndian.Uint16(head[1:])))
	if err != nil {
		t.Fatal(err)
	}
	return head[0], payload
}

// Traffic on a lane is a sign of life, even if it keeps heartbeats waiting.
func TestLaneTrafficIsLife(t *testing.T) {
	_, w, p, _ := proposedWorld(t, Config{Silence: 2 * minSilence})
	head := binary.LittleEndian.AppendUint64(hello{Epoch: 1, Digest: w.roster.Digest, From: 0}.append(nil), 5)
	const size = 30
	s := speak(t, p.node, nodeOf(w), laneProtocol, appendHead(head, tagged(0), size))
	defer s.Reset(node.ErrClosed)
	begin, got := time.Now(), 0
	beat := time.NewTicker(minSilence / 4)
	defer beat.Stop()
	go func() {
		for range size {
			<-beat.C
			if _, err := s.Write([]byte{1}); err != nil {
				return
			}
		}
	}()
	err := w.Recv(t.Context(), 0, 5, acceptAny, func(p []byte) error { got += len(p); return nil })
	if err != nil || got != size || time.Since(begin) < 3*minSilence {
		t.Errorf("%d bytes in %s: %v", got, time.Since(begin), err)
	}
	if err := ended(w, 0, ErrSilent); err != nil { // and its absence is not
		t.Error(err)
	}
}

func nodeOf(w *World) *node.Node { return w.node }

// An end says what the first rank to know says, and is sent on to nobody twice.
func TestEndOnTheWire(t *testing.T) {
	_, w, p, control := proposedWorld(t, Config{})
	if err := w.Signal(0, 3, []byte("last words")); err != nil {
		t.Fatal(err)
	}
	w.End(errors.New("a tensor went missing"))
	kind, payload := readFrame(t, control)
	for kind == frameBeat || kind == frameStand {
		kind, payload = readFrame(t, control)
	}
	if kind != frameSignal || string(payload) != "\x03\x00\x00\x00last words" {
		t.Errorf("before the end: frame of kind %d, %q", kind, payload)
	}
	if e := readEnd(t, control, w.roster); e.Rank != 1 || e.Err.Error() != "a tensor went missing" {
		t.Errorf("told %v", e)
	}
	// Until we say that we know, it keeps the stream.
	select {
	case <-w.done:
		t.Error("gone before we knew")
	default:
	}
	p.say(control, endFrame(&EndedError{Epoch: 1, Rank: 1, Err: errors.New("as you said")})...)
	<-w.done
	for {
		if _, err := control.Read(make([]byte, 64)); err != nil {
			if !errors.Is(err, node.ErrClosed) {
				t.Errorf("after the end: %v", err)
			}
			break
		}
	}
}

// A rank that leaves waits for its lanes to be taken, and for a goodbye.
func TestLeaveOnTheWire(t *testing.T) {
	m, w, p, control := proposedWorld(t, Config{})
	lanes := make(chan *node.Stream, 1)
	stop, err := p.node.Handle(t.Context(), laneProtocol, func(s *node.Stream) { lanes <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := w.Send(t.Context(), 0, 9, tagged(4), 3, whole([]byte("abc"))); err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- m.Leave(t.Context()) }()
	kind, payload := readFrame(t, control)
	for kind == frameBeat || kind == frameStand {
		kind, payload = readFrame(t, control)
	}
	if kind != frameLeave || binary.LittleEndian.Uint32(payload) != 1 {
		t.Errorf("frame of kind %d, %x", kind, payload)
	}
	s := <-lanes
	got, err := io.ReadAll(s) // the lane has an end
	want := appendHead(binary.LittleEndian.AppendUint64(w.hello().append(nil), 9), tagged(4), 3)
	if err != nil || string(got) != string(want)+"abc" {
		t.Errorf("the lane had %q, %v", got, err)
	}
	p.say(control, controlFrame(frameGoodbye, nil)...)
	select {
	case err := <-left:
		t.Errorf("left before its message was taken: %v", err)
	case <-time.After(30 * time.Millisecond): // far more than it would take
	}
	s.Close()
	if err := <-left; err != nil {
		t.Error(err)
	}
}
