package mesh

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// A memo keeps what is asked for, and forgets the rest in time.
func TestMemo(t *testing.T) {
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	var m memo[int]
	if _, ok := m.get(key(0)); ok {
		t.Error("an empty memo has something")
	}
	for i := range 10 * memoMost {
		m.put(key(i), i)
		if v, ok := m.get(key(0)); !ok || v != 0 {
			t.Fatalf("after %d more it has lost what is asked for", i)
		}
	}
	if n := len(m.fresh) + len(m.old); n > 2*memoMost {
		t.Errorf("it keeps %d", n)
	}
	if _, ok := m.get(key(1)); ok {
		t.Error("it keeps what nobody asks for")
	}
}

// A forgery is refused whatever was found good before, and found bad every time.
func TestMemoKeepsNoForgery(t *testing.T) {
	key, public, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	d := digest{1}
	sig, err := signStand(key, d)
	if err != nil {
		t.Fatal(err)
	}
	a := &announcement{Version: protocolVersion, Mesh: "m", World: 1}
	if err := a.seal(key); err != nil {
		t.Fatal(err)
	}
	raw := bytes.Clone(a.raw)
	raw[len(raw)-1] ^= 1
	for range 2 {
		if err := checkStand(id, d, sig); err != nil {
			t.Error(err)
		}
		if checkStand(id, digest{2}, sig) == nil || checkStand(id, d, append([]byte{sig[0] ^ 1}, sig[1:]...)) == nil || checkStand(id, d, nil) == nil {
			t.Error("a forged signature passes")
		}
		first, err := openAnnouncement(a.raw)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := openAnnouncement(bytes.Clone(a.raw)); again != first {
			t.Errorf("opened twice, it is two: %v", err)
		}
		if _, err := openAnnouncement(raw); err == nil {
			t.Error("a forged announcement passes")
		}
	}
}
