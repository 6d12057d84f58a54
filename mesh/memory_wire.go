package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A memory goes with a vote, and is what a state file keeps. What it says of worlds is
// read without checking their proofs: see past.check.

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
	if err := m.consistent(); err != nil {
		return nil, err
	}
	return m, nil
}

// consistent refuses what no peer can have lived through.
func (m *memory) consistent() error {
	if n := len(m.Bare); n > 0 && m.Bare[n-1] > m.Promised {
		return fmt.Errorf("mesh: memory: without what went before epoch %d, promised %d", m.Bare[n-1], m.Promised)
	}
	if n := len(m.Before); n > 0 && m.Before[n-1].Epoch >= m.epoch() {
		return fmt.Errorf("mesh: memory: world %d before world %d", m.Before[n-1].Epoch, m.epoch())
	}
	if m.Promised > maxEpoch || m.Promised < max(m.epoch(), m.Born, m.Ahead) {
		return fmt.Errorf("mesh: memory of epoch %d, born after %d, ahead in %d, promised %d", m.epoch(), m.Born, m.Ahead, m.Promised)
	}
	return nil
}
