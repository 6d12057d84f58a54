package simlink

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// A packet has a place of its own until it has been read, also where the room of one
// that was read before is used again.
func TestPacksAreNotShared(t *testing.T) {
	for round := range 3 {
		var packs [][]byte
		for i := range byte(8) {
			packs = append(packs, pack(pack(nil, bytes.Repeat([]byte{i}, PacketSize/2)), bytes.Repeat([]byte{i}, PacketSize/2)))
		}
		for i, p := range packs {
			if want := bytes.Repeat([]byte{byte(i)}, PacketSize); !bytes.Equal(p, want) || cap(p) != PacketSize {
				t.Errorf("round %d: pack %d has other bytes", round, i)
			}
			unpack(p)
		}
	}
}

// A packet of few bytes takes little room, until it grows; one that is cut does not grow
// into the other part.
func TestPackGrows(t *testing.T) {
	p := pack(nil, []byte("few"))
	if string(p) != "few" || cap(p) > smallPack {
		t.Errorf("%q takes %d bytes", p, cap(p))
	}
	p = pack(p, make([]byte, smallPack))
	if string(p[:3]) != "few" || len(p) != 3+smallPack || cap(p) != PacketSize {
		t.Errorf("%d bytes in a place for %d", len(p), cap(p))
	}
	first, rest := p[:2:2], p[2:]
	first, rest = pack(first, []byte("igh")), pack(rest, []byte("!"))
	if string(first) != "feigh" || rest[0] != 'w' || rest[len(rest)-1] != '!' {
		t.Errorf("%q and then %q", first, rest)
	}
	unpack(rest) // not whole: kept by nobody
}

// Packets that are cut in two, read in part and written behind come out as they went in,
// over and over.
func TestPacksCarry(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}, Window: 3*PacketSize + 100}, func(l *lab) {
		want, got := numbered(3*PacketSize+17), make([]byte, 3*PacketSize+17)
		for round := range 40 {
			want[round]++
			go func() {
				for _, p := range [][]byte{want[:round*100], want[round*100:]} {
					if _, err := l.near.Write(p); err != nil {
						l.Error(err)
					}
				}
			}()
			for rest := got; len(rest) > 0; {
				n, err := io.ReadFull(l.near.peer, rest[:min(len(rest), PacketSize+round)])
				if err != nil {
					l.Fatal(err)
				}
				rest = rest[n:]
			}
			if !bytes.Equal(got, want) {
				l.Fatalf("round %d: other bytes than were written", round)
			}
		}
	})
}

// Who has read a packet in part and wants no more gives back room for the rest of it alone.
func TestCloseReadWithinPacket(t *testing.T) {
	inLab(t, "", Config{Window: PacketSize}, func(l *lab) {
		l.send(l.near, PacketSize)
		l.after(time.Second)
		far := l.near.peer
		if _, err := io.ReadFull(far, make([]byte, 100)); err != nil {
			l.Error(err)
		}
		if err := far.CloseRead(); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		if l.near.credit+far.taken != PacketSize {
			l.Errorf("room for %d bytes and %d to come, of %d", l.near.credit, far.taken, PacketSize)
		}
	})
}
