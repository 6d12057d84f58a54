package mesh

import (
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// maxStand bounds a signature.
	maxStand = 64

	standDomain = "peermesh-stands"
)

// A past is a world that has stood on every rank. Its members' signatures prove
// that, so nobody can make others believe in a world that never was.
type past struct {
	roster
	Stands [][]byte // by rank
}

// append writes a past, or that there is none, which is a byte of 0.
func (p *past) append(b []byte) []byte {
	if p == nil {
		return appendFlag(b, false)
	}
	return appendBlocks(p.roster.append(appendFlag(b, true)), p.Stands)
}

// readPast reads a past without checking its proof.
func readPast(r io.Reader, mesh string) (*past, error) {
	some, err := readFlag(r)
	if err != nil || !some {
		return nil, err
	}
	p := &past{}
	if p.roster, err = readRoster(r, mesh); err != nil {
		return nil, err
	}
	if p.Stands, err = readBlocks(r, MaxWorld, maxStand); err != nil {
		return nil, fmt.Errorf("mesh: past: %w", err)
	}
	if len(p.Stands) != len(p.Members) {
		return nil, fmt.Errorf("mesh: past: %d signatures of %d members", len(p.Stands), len(p.Members))
	}
	return p, nil
}

// standText is what a member signs when a world stands for it.
func standText(d digest) []byte { return append([]byte(standDomain), d[:]...) }

// signStand says that a world stands for us.
func signStand(key crypto.PrivKey, d digest) ([]byte, error) {
	sig, err := key.Sign(standText(d))
	if err != nil {
		return nil, fmt.Errorf("mesh: cannot sign: %w", err)
	}
	return sig, nil
}

// checkStand checks a member's signature. The key is in the ID.
func checkStand(id peer.ID, d digest, sig []byte) error {
	text := standText(d)
	name := make([]byte, 0, 4+len(id)+len(text)+len(sig))
	name = append(appendBlock(appendBlock(name, []byte(id)), text), sig...)
	if _, good := goodStands.get(name); good {
		return nil
	}
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return fmt.Errorf("mesh: no key in %s: %v", id, err)
	}
	if ok, err := key.Verify(text, sig); !ok {
		return fmt.Errorf("mesh: %s has not said that it stands: %v", id, err)
	}
	goodStands.put(name, struct{}{})
	return nil
}

// check proves that a world has stood on every rank.
func (p *past) check() error {
	for i, id := range p.Members {
		if err := checkStand(id, p.Digest, p.Stands[i]); err != nil {
			return fmt.Errorf("world %d: %w", p.Epoch, err)
		}
	}
	return nil
}
