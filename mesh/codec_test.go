package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

func TestAnnouncementThereAndBack(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a := &announcement{Version: protocolVersion, Mesh: "läuft", World: MaxWorld, Since: time.UnixMicro(1), Expires: time.UnixMicro(2)}
	for i := range maxAddrs + 5 {
		a.Addrs = append(a.Addrs, multiaddr.StringCast(fmt.Sprintf("/ip4/192.0.2.1/udp/%d/quic-v1", i)))
	}
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	b, err := openAnnouncement(a.raw)
	if err != nil {
		t.Fatal(err)
	}
	if b.ID != id || b.Mesh != a.Mesh || b.World != a.World || !b.Since.Equal(a.Since) || !b.Expires.Equal(a.Expires) ||
		len(b.Addrs) != maxAddrs || !b.Addrs[maxAddrs-1].Equal(a.Addrs[maxAddrs-1]) {
		t.Errorf("%+v became %+v", a, b)
	}
	for i := range a.raw { // no byte of it can be changed
		forged := bytes.Clone(a.raw)
		forged[i] ^= 0x10
		if c, err := openAnnouncement(forged); err == nil && (c.ID != id || c.Mesh != a.Mesh || c.World != a.World) {
			t.Fatalf("byte %d: accepted %+v", i, c)
		}
	}
}

func TestAnnouncementFits(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &announcement{Version: protocolVersion, Mesh: strings.Repeat("m", MaxName), World: 1}
	for i := range maxAddrs {
		a.Addrs = append(a.Addrs, multiaddr.StringCast(fmt.Sprintf("/dns4/%s%d/tcp/1", strings.Repeat("x", 110), i)))
	}
	a.Addrs = append([]multiaddr.Multiaddr{multiaddr.StringCast("/dns4/" + strings.Repeat("y", 2*maxAddr) + "/tcp/1")}, a.Addrs...)
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	b, err := openAnnouncement(a.raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Addrs) == 0 || !b.Addrs[0].Equal(a.Addrs[1]) {
		t.Errorf("%d addresses fit: %v", len(b.Addrs), b.Addrs)
	}
}

func TestAnnouncementRefused(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	rsa, _, err := crypto.GenerateKeyPair(crypto.ECDSA, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := announcement{Version: protocolVersion, Mesh: "m", World: 1}
	for want, c := range map[string]struct {
		key crypto.PrivKey
		set func(a *announcement)
	}{
		"world of 0":    {key, func(a *announcement) { a.World = 0 }},
		"world of 1025": {key, func(a *announcement) { a.World = MaxWorld + 1 }},
		"mesh name":     {key, func(a *announcement) { a.Mesh = "a\x1b[2J" }},
		"Ed25519":       {rsa, func(*announcement) {}},
	} {
		a := good
		c.set(&a)
		if err := a.seal(c.key); err != nil {
			t.Fatal(err)
		}
		if _, err := openAnnouncement(a.raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The future may change everything after the version.
	a := good
	a.Version, a.World = protocolVersion+1, 9999
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	if b, err := openAnnouncement(a.raw); err != nil || b.Version != protocolVersion+1 {
		t.Errorf("another version: %+v, %v", b, err)
	}
	if _, err := openAnnouncement(make([]byte, maxAnnouncement+1)); err == nil {
		t.Error("an oversized announcement was opened")
	}
}

func TestAnswerThereAndBack(t *testing.T) {
	a := answer{Code: declineStale, Epoch: 7, Base: digest{1, 2}, Text: strings.Repeat("long ", 200)}
	b, err := readAnswer(bytes.NewReader(a.append(nil)))
	if err != nil || b.Code != a.Code || b.Epoch != a.Epoch || b.Base != a.Base || b.Text != a.Text[:maxText] {
		t.Errorf("%+v, %v", b, err)
	}
	if b.final() || !(&answer{Code: refuseFull}).final() || (&answer{}).final() {
		t.Error("which answers are final?")
	}
	a.Text = "red \x1b[31m\xff"
	if b, err = readAnswer(bytes.NewReader(a.append(nil))); err != nil || b.Text != "red  [31m?" {
		t.Errorf("%q, %v", b.Text, err)
	}
}

func TestEndThereAndBack(t *testing.T) {
	r := newRoster("m", 3, digest{}, []peer.ID{"a", "b"})
	for _, cause := range []error{ErrLost, fmt.Errorf("%w for 4s", ErrSilent), ErrLeft, ErrClosed, ErrAbsent, errors.New("own")} {
		e := &EndedError{Epoch: 3, Rank: 1, Peer: "b", Err: cause}
		got, err := decodeEnd(endFrame(e)[controlHead:], r)
		if err != nil {
			t.Fatal(err)
		}
		if got.Error() != e.Error() || causeOf(got) != causeOf(e) {
			t.Errorf("%v became %v", e, got)
		}
	}
	long := &EndedError{Epoch: 3, Err: errors.New(strings.Repeat("é", maxCause))}
	if got, err := decodeEnd(endFrame(long)[controlHead:], r); err != nil || len(got.Err.Error()) != maxCause {
		t.Errorf("%v, %v", got, err)
	}
}

func TestHeadThereAndBack(t *testing.T) {
	for _, n := range []int64{0, 1, maxMessage} {
		tag, got, err := decodeHead(appendHead(nil, tagged(5), n))
		if err != nil || got != n || seq(tag) != 5 {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
	if _, _, err := decodeHead(appendHead(nil, tagged(5), maxMessage+1)); err == nil {
		t.Error("a message without bound")
	}
}

func TestBlocks(t *testing.T) {
	blocks := [][]byte{{1}, {}, {2, 3}}
	p := appendBlocks(nil, blocks)
	got, err := readBlocks(bytes.NewReader(p), 3, 2)
	if err != nil || len(got) != 3 || !bytes.Equal(got[2], blocks[2]) {
		t.Errorf("%v, %v", got, err)
	}
	for name, r := range map[string]io.Reader{
		"count": bytes.NewReader([]byte{4, 0}), "length": bytes.NewReader([]byte{1, 0, 3, 0}),
		"empty": bytes.NewReader(nil), "short": bytes.NewReader(p[:len(p)-1]), "no length": bytes.NewReader(p[:3]),
	} {
		if got, err := readBlocks(r, 3, 2); err == nil {
			t.Errorf("%s: read %v", name, got)
		}
	}
}

func TestScannerTooShort(t *testing.T) {
	s := scanner{p: []byte{1, 2, 3}}
	if s.uint16() != 0x201 || s.uint32() != 0 || s.bytes(100) != nil || !errors.Is(s.end(), errShort) {
		t.Errorf("%+v", s)
	}
	s = scanner{p: []byte{1, 2}}
	if s.uint8() != 1 || s.end() == nil {
		t.Error("a byte too many was not noticed")
	}
}
