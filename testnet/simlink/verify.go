package simlink

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/crypto/pb"
)

// maxRemembered bounds the signatures that are remembered: some 3 MB.
const maxRemembered = 1 << 16

// RememberSignatures has this process check every Ed25519 signature once: a world of
// n nodes in one process would otherwise check each announcement n times over, which
// is a sixth of what a small world costs. A signature that is wrong is wrong each
// time. It changes libp2p's table of keys, so it is for a program's beginning, before
// there are nodes: for TestMain.
func RememberSignatures() { remember() }

var remember = sync.OnceFunc(func() {
	unmarshal := crypto.PubKeyUnmarshallers[pb.KeyType_Ed25519]
	seen := &signatures{good: make(map[[sha256.Size]byte]struct{})}
	crypto.PubKeyUnmarshallers[pb.KeyType_Ed25519] = func(data []byte) (crypto.PubKey, error) {
		key, err := unmarshal(data)
		if err != nil {
			return nil, err
		}
		return &rememberingKey{key, bytes.Clone(data), seen}, nil
	}
})

// signatures are those that were right.
type signatures struct {
	mu   sync.Mutex
	good map[[sha256.Size]byte]struct{}
}

// A rememberingKey knows what it has checked.
type rememberingKey struct {
	crypto.PubKey
	raw  []byte
	seen *signatures
}

// Verify checks what was not checked before. What is remembered is a hash of the key,
// the text and the signature: nothing else has that hash.
func (k *rememberingKey) Verify(data, sig []byte) (bool, error) {
	h := sha256.New()
	for _, part := range [][]byte{k.raw, data, sig} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	if k.seen.has(sum) {
		return true, nil
	}
	ok, err := k.PubKey.Verify(data, sig)
	if ok && err == nil {
		k.seen.add(sum)
	}
	return ok, err
}

func (s *signatures) has(sum [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.good[sum]
	return ok
}

func (s *signatures) add(sum [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.good) >= maxRemembered {
		clear(s.good)
	}
	s.good[sum] = struct{}{}
}
