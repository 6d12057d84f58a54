package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// maxID bounds a peer's ID in bytes; those of Ed25519 keys have 38.
	maxID = 64
	// maxStand bounds a signature.
	maxStand = 64

	standDomain = "peermesh-stands"
)

func appendIDs(p []byte, ids []peer.ID) []byte {
	p = binary.LittleEndian.AppendUint16(p, uint16(len(ids)))
	for _, id := range ids {
		p = appendBlock(p, []byte(id))
	}
	return p
}

func (r roster) append(p []byte) []byte {
	return appendIDs(appendEpochDigest(p, r.Epoch, r.Base), r.Members)
}

// readRoster reads a roster of a mesh. Its digest is not sent but made anew.
func readRoster(r io.Reader, mesh string) (roster, error) {
	epoch, base, err := readEpochDigest(r)
	if err != nil {
		return roster{}, fmt.Errorf("mesh: roster: %w", err)
	}
	blocks, err := readBlocks(r, MaxWorld, maxID)
	if err != nil {
		return roster{}, fmt.Errorf("mesh: roster: %w", err)
	}
	var ids []peer.ID
	for i, b := range blocks {
		if ids = append(ids, peer.ID(b)); i > 0 && compareID(ids[i-1], ids[i]) >= 0 {
			return roster{}, errors.New("mesh: roster: members out of order")
		}
	}
	if len(ids) == 0 || epoch == 0 || epoch > maxEpoch {
		return roster{}, fmt.Errorf("mesh: roster of %d members in epoch %d", len(ids), epoch)
	}
	return newRoster(mesh, epoch, base, ids), nil
}

// append writes a past, or that there is none, which is a byte of 0.
func (p *past) append(b []byte) []byte {
	if p == nil {
		return append(b, 0)
	}
	return appendBlocks(p.roster.append(append(b, 1)), p.Stands)
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

func appendFlag(p []byte, on bool) []byte {
	if on {
		return append(p, 1)
	}
	return append(p, 0)
}

func readFlag(r io.Reader) (bool, error) {
	p, err := readFull(r, 1)
	if err != nil {
		return false, fmt.Errorf("mesh: flag: %w", err)
	}
	if p[0] > 1 {
		return false, fmt.Errorf("mesh: flag of %d", p[0])
	}
	return p[0] == 1, nil
}

// readCount reads a count in a byte.
func readCount(r io.Reader, limit int) (int, error) {
	p, err := readFull(r, 1)
	if err != nil {
		return 0, fmt.Errorf("mesh: count: %w", err)
	}
	if int(p[0]) > limit {
		return 0, fmt.Errorf("mesh: count of %d, want at most %d", p[0], limit)
	}
	return int(p[0]), nil
}

func (m *memory) append(p []byte) []byte {
	p = binary.LittleEndian.AppendUint64(p, m.Promised)
	p = append(m.Last.append(p), uint8(len(m.Line)))
	for _, q := range m.Line {
		p = q.append(p)
	}
	p = binary.LittleEndian.AppendUint64(appendFlag(p, m.Voter), m.Born)
	p = append(p, uint8(len(m.Bare)))
	for _, e := range m.Bare {
		p = binary.LittleEndian.AppendUint64(p, e)
	}
	p = append(p, uint8(len(m.Before)))
	for _, f := range m.Before {
		p = appendFlag(f.roster.append(p), f.Had)
	}
	p = binary.LittleEndian.AppendUint64(p, m.Ahead)
	p = append(p, uint8(len(m.Doubt)))
	for _, r := range m.Doubt {
		p = r.append(p)
	}
	p = append(p, uint8(len(m.Passed)))
	for _, q := range m.Passed {
		p = appendEpochDigest(p, q.Epoch, q.Digest)
	}
	return p
}

// readLine reads the worlds before the last, without checking their proofs.
func readLine(r io.Reader, mesh string) (line []*past, err error) {
	count, err := readCount(r, maxLine)
	if err != nil {
		return nil, err
	}
	members := 0
	for range count {
		p, err := readPast(r, mesh)
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errors.New("mesh: memory: a line with a gap")
		}
		if members += len(p.Members); members > maxLineMembers {
			return nil, fmt.Errorf("mesh: memory: a line of %d members, want at most %d", members, maxLineMembers)
		}
		line = append(line, p)
	}
	return line, nil
}

// readBare reads the epochs of a memory's bare worlds.
func readBare(r io.Reader) (bare []uint64, err error) {
	count, err := readCount(r, maxBare)
	if err != nil || count == 0 {
		return nil, err
	}
	p, err := readFull(r, 8*count)
	if err != nil {
		return nil, fmt.Errorf("mesh: memory: %w", err)
	}
	for s := (scanner{p: p}); len(s.p) > 0; {
		e := s.uint64()
		if n := len(bare); n > 0 && e <= bare[n-1] {
			return nil, fmt.Errorf("mesh: memory: epoch %d after %d", e, bare[n-1])
		}
		bare = append(bare, e)
	}
	return bare, nil
}

// readBefore reads the worlds that the last one went on from, and how far that was got
// beyond.
func readBefore(r io.Reader, mesh string) (before []former, ahead uint64, err error) {
	count, err := readCount(r, maxLine)
	if err != nil {
		return nil, 0, err
	}
	members := 0
	for i := range count {
		var f former
		if f.roster, err = readRoster(r, mesh); err != nil {
			return nil, 0, err
		}
		if f.Had, err = readFlag(r); err != nil {
			return nil, 0, err
		}
		members += len(f.Members)
		if i > 0 && f.Epoch <= before[i-1].Epoch || members > maxLineMembers {
			return nil, 0, fmt.Errorf("mesh: memory: before its last world one of epoch %d, and %d members so far", f.Epoch, members)
		}
		before = append(before, f)
	}
	p, err := readFull(r, 8)
	if err != nil {
		return nil, 0, fmt.Errorf("mesh: memory: %w", err)
	}
	return before, binary.LittleEndian.Uint64(p), nil
}

func readMemory(r io.Reader, mesh string) (*memory, error) {
	head, err := readFull(r, 8)
	if err != nil {
		return nil, fmt.Errorf("mesh: memory: %w", err)
	}
	m := &memory{Promised: binary.LittleEndian.Uint64(head)}
	if m.Last, err = readPast(r, mesh); err != nil {
		return nil, err
	}
	if m.Line, err = readLine(r, mesh); err != nil {
		return nil, err
	}
	if m.Voter, err = readFlag(r); err != nil {
		return nil, err
	}
	born, err := readFull(r, 8)
	if err != nil {
		return nil, fmt.Errorf("mesh: memory: %w", err)
	}
	m.Born = binary.LittleEndian.Uint64(born)
	if m.Bare, err = readBare(r); err != nil {
		return nil, err
	}
	if m.Before, m.Ahead, err = readBefore(r, mesh); err != nil {
		return nil, err
	}
	doubts, err := readCount(r, maxDoubt)
	if err != nil {
		return nil, err
	}
	for range doubts {
		d, err := readRoster(r, mesh)
		if err != nil {
			return nil, err
		}
		m.Doubt = append(m.Doubt, d)
	}
	passed, err := readCount(r, maxPassed)
	if err != nil {
		return nil, err
	}
	for range passed {
		epoch, d, err := readEpochDigest(r)
		if err != nil {
			return nil, fmt.Errorf("mesh: memory: %w", err)
		}
		m.Passed = append(m.Passed, passing{epoch, d})
	}
	if n := len(m.Bare); n > 0 && m.Bare[n-1] > m.Promised {
		return nil, fmt.Errorf("mesh: memory: without what went before epoch %d, promised %d", m.Bare[n-1], m.Promised)
	}
	if n := len(m.Before); n > 0 && m.Before[n-1].Epoch >= m.epoch() {
		return nil, fmt.Errorf("mesh: memory: world %d before world %d", m.Before[n-1].Epoch, m.epoch())
	}
	if m.Promised > maxEpoch || m.Promised < max(m.epoch(), m.Born, m.Ahead) {
		return nil, fmt.Errorf("mesh: memory of epoch %d, born after %d, ahead in %d, promised %d", m.epoch(), m.Born, m.Ahead, m.Promised)
	}
	return m, nil
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
	if _, good := stood.get(name); good {
		return nil
	}
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return fmt.Errorf("mesh: no key in %s: %v", id, err)
	}
	if ok, err := key.Verify(text, sig); !ok {
		return fmt.Errorf("mesh: %s has not said that it stands: %v", id, err)
	}
	stood.put(name, struct{}{})
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
