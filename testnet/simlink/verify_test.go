package simlink

import (
	"encoding/binary"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// A remembered signature counts for its key and its text only.
func TestRememberSignatures(t *testing.T) {
	RememberSignatures()
	var keys [2]crypto.PubKey
	for i := range keys {
		id, err := peer.IDFromPrivateKey(Key(1, i))
		if err != nil {
			t.Fatal(err)
		}
		if keys[i], err = id.ExtractPublicKey(); err != nil {
			t.Fatal(err)
		}
		if !keys[i].Equals(Key(1, i).GetPublic()) || !Key(1, i).GetPublic().Equals(keys[i]) || i > 0 && keys[0].Equals(keys[1]) {
			t.Error("a key that remembers is another than it was")
		}
	}
	sig, err := Key(1, 0).Sign([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, c := range []struct {
			key       crypto.PubKey
			text, sig string
			want      bool
		}{
			{keys[0], "text", string(sig), true},
			{keys[1], "text", string(sig), false},
			{keys[0], "test", string(sig), false},
			{keys[0], "tex", "t" + string(sig), false},
			{keys[0], "text", string(sig[:63]), false},
		} {
			if ok, _ := c.key.Verify([]byte(c.text), []byte(c.sig)); ok != c.want {
				t.Errorf("%q: %v", c.text, ok)
			}
		}
	}
}

// What is remembered is bounded.
func TestSignaturesAreForgotten(t *testing.T) {
	s := &signatures{good: make(map[[32]byte]struct{})}
	for i := range uint64(maxRemembered + 10) {
		var sum [32]byte
		binary.LittleEndian.PutUint64(sum[:], i)
		if s.add(sum); !s.has(sum) || len(s.good) > maxRemembered {
			t.Fatalf("%d are remembered, %d among them: %v", len(s.good), i, s.has(sum))
		}
	}
}
