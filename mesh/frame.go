package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// The bytes of every protocol are described in SPEC.md. Integers are
// little-endian. This file has what the decoders share: no decoder allocates
// before it has checked a length against a bound of its own.

// errShort is a frame that ends before its fields do.
var errShort = errors.New("mesh: frame is too short")

// A scanner takes fields off a frame. After a failure it yields zeros, and end
// reports the failure.
type scanner struct {
	p   []byte
	err error
}

func (s *scanner) take(n int) []byte {
	if s.err != nil || n > len(s.p) {
		s.err = errors.Join(s.err, errShort)
		s.p = nil
		return make([]byte, min(n, 8)) // enough for any integer; n is checked by bytes
	}
	p := s.p[:n]
	s.p = s.p[n:]
	return p
}

func (s *scanner) uint8() uint8   { return s.take(1)[0] }
func (s *scanner) uint16() uint16 { return binary.LittleEndian.Uint16(s.take(2)) }
func (s *scanner) uint32() uint32 { return binary.LittleEndian.Uint32(s.take(4)) }
func (s *scanner) uint64() uint64 { return binary.LittleEndian.Uint64(s.take(8)) }

// bytes takes n bytes; none if the frame has fewer.
func (s *scanner) bytes(n int) []byte {
	p := s.take(n)
	if s.err != nil {
		return nil
	}
	return p
}

func (s *scanner) fail(format string, args ...any) {
	s.err = errors.Join(s.err, fmt.Errorf("mesh: "+format, args...))
}

// end is the first failure, or that the frame has bytes too many.
func (s *scanner) end() error {
	if s.err == nil && len(s.p) > 0 {
		s.fail("frame has %d bytes too many", len(s.p))
	}
	return s.err
}

// readFull reads n bytes, where n is a constant of the protocol or has been
// checked.
func readFull(r io.Reader, n int) ([]byte, error) {
	p := make([]byte, n)
	if _, err := io.ReadFull(r, p); err != nil {
		return nil, err
	}
	return p, nil
}

// readBlock reads a length in two bytes and that many bytes, at most limit.
func readBlock(r io.Reader, limit int) ([]byte, error) {
	head, err := readFull(r, 2)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint16(head))
	if n > limit {
		return nil, fmt.Errorf("mesh: block of %d bytes, want at most %d", n, limit)
	}
	return readFull(r, n)
}

func appendBlock(p, block []byte) []byte {
	p = binary.LittleEndian.AppendUint16(p, uint16(len(block)))
	return append(p, block...)
}

// readBlocks reads a count in two bytes and that many blocks.
func readBlocks(r io.Reader, count, limit int) ([][]byte, error) {
	head, err := readFull(r, 2)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint16(head))
	if n > count {
		return nil, fmt.Errorf("mesh: %d blocks, want at most %d", n, count)
	}
	var blocks [][]byte // grows as they arrive, not by the peer's word
	for range n {
		b, err := readBlock(r, limit)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func appendBlocks(p []byte, blocks [][]byte) []byte {
	p = binary.LittleEndian.AppendUint16(p, uint16(len(blocks)))
	for _, b := range blocks {
		p = appendBlock(p, b)
	}
	return p
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

// readEpochDigest reads an epoch and a digest, which together name a roster, or the one that a
// roster follows.
func readEpochDigest(r io.Reader) (epoch uint64, d digest, err error) {
	p, err := readFull(r, 8+len(d))
	if err != nil {
		return 0, d, err
	}
	s := scanner{p: p}
	return s.uint64(), digest(s.bytes(len(d))), nil
}

func appendEpochDigest(p []byte, epoch uint64, d digest) []byte {
	return append(binary.LittleEndian.AppendUint64(p, epoch), d[:]...)
}

// clip cuts a text to a number of bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// printable makes a peer's text fit for a log line and a terminal.
func printable(p []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(p), "?"))
}
