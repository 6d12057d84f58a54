package mesh

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Each target feeds a decoder what a peer may send. None may crash, allocate
// beyond its bounds, or accept what does not encode to the same again.

func FuzzAnnouncement(f *testing.F) {
	a := newAnnouncement(f, "default", 4, "/ip4/127.0.0.1/tcp/1")
	f.Add(a.raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := openAnnouncement(raw)
		if err == nil && (a.ID == "" || len(a.Addrs) > maxAddrs) {
			t.Errorf("accepted %+v", a)
		}
	})
}

// The payload alone, because no fuzzer forges a signature.
func FuzzAnnouncementPayload(f *testing.F) {
	p, err := newAnnouncement(f, "default", 4, "/ip4/127.0.0.1/tcp/1").MarshalRecord()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p)
	f.Fuzz(func(t *testing.T, p []byte) {
		var a announcement
		if a.UnmarshalRecord(p) != nil || a.Version != protocolVersion {
			return
		}
		if a.World < 1 || a.World > MaxWorld || !validName(a.Mesh) || len(a.Addrs) > maxAddrs {
			t.Errorf("accepted %+v", a)
		}
		if _, err := a.MarshalRecord(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add(appendBlocks(nil, [][]byte{{1}, {2, 3}}))
	f.Fuzz(func(t *testing.T, p []byte) {
		blocks, err := readBlocks(bytes.NewReader(p), maxKnown, maxAnnouncement)
		if err == nil && !bytes.HasPrefix(p, appendBlocks(nil, blocks)) {
			t.Errorf("%x became %x", p, blocks)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add((&answer{Code: refuseFull, Epoch: 1, Text: "full"}).append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		a, err := readAnswer(bytes.NewReader(p))
		if err == nil && a.Code != p[0] {
			t.Errorf("%+v", a)
		}
	})
}

func FuzzProposal(f *testing.F) {
	a := newAnnouncement(f, "default", 1)
	p := &proposal{mind: new(memory), members: []*announcement{a}, roster: newRoster("default", 1, digest{}, []peer.ID{a.ID})}
	f.Add(p.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readProposal(bytes.NewReader(b), a.ID)
		if err == nil && !bytes.HasPrefix(b, p.append(nil)) {
			t.Errorf("accepted %+v", p)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{Epoch: 1, Digest: digest{2}, From: 3}.append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := readHello(bytes.NewReader(p))
		if err == nil && !bytes.HasPrefix(p, h.append(nil)) {
			t.Errorf("%+v", h)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add(appendHead(nil, tagged(1), 2))
	f.Fuzz(func(t *testing.T, p []byte) {
		tag, n, err := decodeHead(p)
		if err == nil && (n < 0 || n > maxMessage || !bytes.Equal(p, appendHead(nil, tag, n))) {
			t.Errorf("%x, %d", tag, n)
		}
	})
}

func FuzzControl(f *testing.F) {
	r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
	p := &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}
	for _, frame := range [][]byte{
		controlFrame(frameBeat, make([]byte, beatSize)), rankFrame(frameIn, 1, nil), rankFrame(frameStand, 1, make([]byte, maxStand)), controlFrame(frameSignal, []byte{1, 0, 0, 0, 9}), controlFrame(frameGoodbye, nil),
		controlFrame(frameLeave, []byte{1, 0, 0, 0}), endFrame(&EndedError{Epoch: 1, Rank: 1, Err: ErrLost}),
	} {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(nil, Config{Silence: time.Second}, p, "a")
		w.OnSignal(1, func(from int, p []byte) {
			if from != 1 || len(p) > maxSignal {
				t.Errorf("signal %x from %d", p, from)
			}
		})
		if err := w.links[1].frames(bufio.NewReader(bytes.NewReader(b))); err == nil {
			t.Error("the stream has no end")
		}
	})
}
