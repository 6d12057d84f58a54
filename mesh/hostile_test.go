package mesh

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

// speak opens a stream from a node that is no part of the test's mesh code, and
// says p.
func speak(t *testing.T, from *node.Node, to *node.Node, proto protocol.ID, p []byte) *node.Stream {
	t.Helper()
	info := peer.AddrInfo{ID: to.ID(), Addrs: to.Host().Addrs()}
	if err := from.Connect(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	s, err := from.Open(t.Context(), to.ID(), proto)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(p); err != nil {
		t.Fatal(err)
	}
	return s
}

// resetWith says p and wants a reset for a reason in return.
func resetWith(t *testing.T, from, to *node.Node, proto protocol.ID, p []byte, want error) {
	t.Helper()
	s := speak(t, from, to, proto, p)
	if _, err := io.ReadAll(s); !errors.Is(err, want) {
		t.Errorf("%s: %.40q: got %v, want %v", proto, p, err, want)
	}
	s.Reset(node.ErrClosed)
}

func TestStrangersGarbage(t *testing.T) {
	p := form(t, 2, Config{})
	stranger := startNode(t, loopback)
	w := p.worlds[0]
	other, forged := newAnnouncement(t, "default", 2), newAnnouncement(t, "default", 2)
	forged.raw[len(forged.raw)-1] ^= 1
	count := func(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }
	hello := func(epoch uint64, d digest, from int) []byte {
		return hello{Epoch: epoch, Digest: d, From: uint32(from)}.append(nil)
	}
	head := append(binary.LittleEndian.AppendUint64(nil, 2), make([]byte, len(digest{}))...)
	for proto, attacks := range map[protocol.ID]map[string]error{
		meetProtocol: {
			string(count(maxKnown + 1)): node.ErrViolation,
			string(count(0)):            node.ErrViolation,
			string(append(count(1), count(maxAnnouncement+1)...)):        node.ErrViolation,
			string(append(append(count(1), count(8)...), "nonsense"...)): node.ErrViolation,
			string(appendBlocks(nil, [][]byte{forged.raw})):              node.ErrViolation,
			string(appendBlocks(nil, [][]byte{other.raw})):               node.ErrViolation, // another's
			string(appendBlocks(nil, [][]byte{p.meshes[1].self.raw})):    node.ErrViolation, // replayed
		},
		formProtocol: {
			string(make([]byte, len(head))):                                            node.ErrViolation, // epoch 0
			string(append(head, count(MaxWorld+1)...)):                                 node.ErrViolation,
			string(append(head, count(0)...)):                                          node.ErrViolation,
			string(append(head, appendBlocks(nil, [][]byte{other.raw})...)):            node.ErrViolation, // not the proposer
			string(append(head, appendBlocks(nil, [][]byte{other.raw, other.raw})...)): node.ErrViolation, // twice
			string(append(head, appendBlocks(nil, [][]byte{forged.raw})...)):           node.ErrViolation,
		},
		controlProtocol: {
			string(hello(1, digest{}, 0)):         node.ErrStale,
			string(hello(2, w.roster.Digest, 0)):  node.ErrStale,
			string(hello(1, w.roster.Digest, 1)):  node.ErrViolation, // not its rank
			string(hello(1, w.roster.Digest, -1)): node.ErrViolation,
		},
		laneProtocol: {
			string(hello(9, w.roster.Digest, 1)): node.ErrStale,
			string(hello(1, w.roster.Digest, 1)): node.ErrViolation,
		},
	} {
		for attack, want := range attacks {
			resetWith(t, stranger, p.nodes[0], proto, []byte(attack), want)
		}
	}
	stillTalk(t, p)
}

// stillTalk checks that a world has come to no harm.
func stillTalk(t *testing.T, p *party) {
	t.Helper()
	each(t, 2, func(rank int) error {
		if rank == 0 {
			return p.worlds[0].Send(t.Context(), 1, 77, tagged(0), 2, whole([]byte("ok")))
		}
		_, got, err := take(t.Context(), p.worlds[1], 0, 77)
		if err == nil && string(got) != "ok" {
			err = fmt.Errorf("got %q", got)
		}
		return err
	})
}

// A member that turns bad can break its own lanes, and no more than that.
func TestMembersBadLanes(t *testing.T) {
	p := form(t, 2, Config{})
	w := p.worlds[1]
	lane := func(n uint64, message []byte) []byte {
		p := binary.LittleEndian.AppendUint64(w.hello().append(nil), n)
		return append(p, message...)
	}
	huge := appendHead(nil, tagged(0), -1)
	for number, c := range map[uint64]struct {
		message []byte
		want    error
	}{
		1: {huge, node.ErrViolation},
		2: {appendHead(nil, tagged(0), maxMessage+1), node.ErrViolation},
		3: {appendHead(nil, tagged(0), 5)[:10], node.ErrViolation},
		4: {append(appendHead(nil, tagged(0), 5), "abc"...), node.ErrViolation},
	} {
		s := speak(t, p.nodes[1], p.nodes[0], laneProtocol, lane(number, c.message))
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := take(t.Context(), p.worlds[0], 1, number); !errors.Is(err, c.want) {
			t.Errorf("lane %d: %v, want %v", number, err, c.want)
		}
		if _, _, err := take(t.Context(), p.worlds[0], 1, number); err == nil {
			t.Errorf("lane %d lives on", number)
		}
		if _, err := io.ReadAll(s); err == nil {
			t.Errorf("lane %d was not reset", number)
		}
		s.Reset(node.ErrClosed)
	}
	resetWith(t, p.nodes[1], p.nodes[0], laneProtocol, lane(1, nil), node.ErrViolation) // again
	resetWith(t, p.nodes[1], p.nodes[0], controlProtocol, w.hello().append(nil), node.ErrLimit)
	stillTalk(t, p)
}

// A member that takes no messages holds up whoever sends to it, and nobody else.
func TestMemberThatNeverReads(t *testing.T) {
	p := form(t, 3, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		data := noise(32 << 20) // more than a link takes ahead
		sent <- p.worlds[0].Send(ctx, 1, 5, tagged(0), int64(len(data)), whole(data))
	}()
	for i := range uint64(20) {
		each(t, 2, func(k int) error {
			if k == 0 {
				return p.worlds[0].Send(t.Context(), 2, 6, tagged(i), 2, whole([]byte("ok")))
			}
			_, _, err := take(t.Context(), p.worlds[2], 0, 6)
			return err
		})
	}
	select {
	case err := <-sent:
		t.Errorf("32 MiB went to a rank that takes nothing: %v", err)
	default:
	}
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, w := range p.worlds {
		if err := context.Cause(w.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestLanesAreBounded(t *testing.T) {
	p := form(t, 2, Config{})
	p.worlds[1].mu.Lock()
	p.worlds[1].lanesFrom[0] = MaxLanes - 1
	p.worlds[1].mu.Unlock()
	for lane := range uint64(2) {
		if err := p.worlds[0].Send(t.Context(), 1, lane, tagged(0), 0, whole(nil)); err != nil {
			t.Fatal(err)
		}
		if lane == 0 {
			if _, _, err := take(t.Context(), p.worlds[1], 0, lane); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := take(t.Context(), p.worlds[1], 0, 2); !errors.Is(err, node.ErrLimit) {
		t.Errorf("one lane too many: %v", err)
	}
	err := error(nil)
	for err == nil { // until the reset is here
		err = p.worlds[0].Send(t.Context(), 1, 1, tagged(0), 0, whole(nil))
	}
	if !errors.Is(err, node.ErrLimit) {
		t.Errorf("sender of one lane too many: %v", err)
	}
}

// Garbage on the control stream is a fault of the rank that sent it.
func TestMembersBadControl(t *testing.T) {
	r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
	members := &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}
	for name, frame := range map[string][]byte{
		"kind":     controlFrame(99, nil),
		"too long": {frameBeat, 0xff, 0xff},
		"beat":     controlFrame(frameBeat, []byte{1}),
		"signal":   controlFrame(frameSignal, []byte{1, 2}),
		"long":     controlFrame(frameSignal, make([]byte, 4+maxSignal+1)),
		"end":      controlFrame(frameEnd, make([]byte, endHead-1)),
		"epoch":    endFrame(&EndedError{Epoch: 7, Err: ErrLeft}),
		"rank":     endFrame(&EndedError{Epoch: 1, Rank: 2, Err: ErrLeft}),
		"leave":    controlFrame(frameLeave, []byte{1}),
		"lanes":    controlFrame(frameLeave, []byte{0xff, 0xff, 0xff, 0xff}),
		"in":       rankFrame(frameIn, 2, nil),
		"stand":    rankFrame(frameStand, 1, make([]byte, maxStand)),
		"goodbye":  controlFrame(frameGoodbye, []byte{1}),
		"twice":    slices.Concat(controlFrame(frameLeave, make([]byte, 4)), controlFrame(frameLeave, make([]byte, 4))),
	} {
		w := newWorld(nil, Config{Silence: time.Second}, members, "a")
		if err := w.links[1].frames(bufio.NewReader(bytes.NewReader(frame))); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := form(t, 2, Config{})
	if _, err := p.worlds[1].links[0].stream.Write(controlFrame(99, nil)); err != nil {
		t.Fatal(err)
	}
	each(t, 2, func(rank int) error { return ended(p.worlds[rank], 1, node.ErrViolation) })
}
