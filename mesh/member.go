package mesh

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
	"github.com/multiformats/go-multiaddr"
)

const (
	// protocolVersion is spoken by peers that can form a world together.
	protocolVersion = 6

	// maxAnnouncement bounds an announcement, envelope and all, in bytes.
	maxAnnouncement = 2048
	// maxAddrs bounds the addresses of an announcement, maxAddr each in bytes.
	maxAddrs, maxAddr = 16, 128

	// lifetime is how long an announcement holds. It is long, so that clocks that
	// differ by minutes do no harm: whether a peer lives is found out by talking
	// to it, and expiry only keeps old announcements from going round for ever.
	lifetime = 15 * time.Minute
	// announceEvery is how often a peer without a world renews its own, and
	// announceSoon how soon after it has met the first other peer.
	announceEvery, announceSoon = 30 * time.Second, 300 * time.Millisecond

	envelopeDomain = "peermesh-announcement"
)

// envelopeCodec is the payload type in the envelope; the first byte is that of
// libp2p's private range.
var envelopeCodec = []byte{0x30, 0x00, 'p', 'm', 'a'}

// An announcement is what a peer says of itself, signed with its key.
type announcement struct {
	ID      peer.ID // from the envelope's key, so it cannot be another's
	Version uint16
	Mesh    string
	World   int
	Since   time.Time // when the peer joined the mesh, by its own clock
	Expires time.Time
	Addrs   []multiaddr.Multiaddr
	Terms   []string
	raw     []byte // the envelope, as others get it
}

var _ record.Record = (*announcement)(nil)

// Domain keeps the signature from standing for anything else.
func (*announcement) Domain() string { return envelopeDomain }

// Codec names the payload's form.
func (*announcement) Codec() []byte { return envelopeCodec }

// MarshalRecord is the payload of the envelope. Addresses that do not fit are
// left out: see foremost.
func (a *announcement) MarshalRecord() ([]byte, error) {
	p := binary.LittleEndian.AppendUint16(nil, a.Version)
	p = append(p, uint8(len(a.Mesh)))
	p = append(p, a.Mesh...)
	p = binary.LittleEndian.AppendUint16(p, uint16(a.World))
	p = binary.LittleEndian.AppendUint64(p, uint64(a.Since.UnixMicro()))
	p = binary.LittleEndian.AppendUint64(p, uint64(a.Expires.UnixMicro()))
	return appendBlock(appendBlocks(p, addrBlocks(a.Addrs)), joinTerms(a.Terms)), nil
}

// UnmarshalRecord reads a payload. Its version comes first, and nothing after
// it is read if that is not ours.
func (a *announcement) UnmarshalRecord(p []byte) error {
	s := scanner{p: p}
	a.Version = s.uint16()
	a.Mesh = string(s.bytes(int(s.uint8())))
	if a.Version != protocolVersion {
		return s.err
	}
	a.World = int(s.uint16())
	a.Since = time.UnixMicro(int64(s.uint64()))
	a.Expires = time.UnixMicro(int64(s.uint64()))
	n := int(s.uint16())
	if n > maxAddrs {
		s.fail("announcement with %d addresses, want at most %d", n, maxAddrs)
	}
	for i := 0; i < n && s.err == nil; i++ {
		m, err := multiaddr.NewMultiaddrBytes(s.bytes(int(s.uint16())))
		if err != nil {
			s.fail("announcement with a bad address: %w", err)
			break
		}
		a.Addrs = append(a.Addrs, m)
	}
	a.Terms = splitTerms(s.bytes(int(s.uint16())))
	switch {
	case !validTerms(a.Terms):
		s.fail("announcement with terms %q", a.Terms)
	case !validName(a.Mesh):
		s.fail("announcement with mesh name %q", a.Mesh)
	case a.World < 1 || a.World > MaxWorld:
		s.fail("announcement with a world of %d", a.World)
	}
	return s.end()
}

// seal signs the announcement and sets its raw form.
func (a *announcement) seal(key crypto.PrivKey) error {
	e, err := record.Seal(a, key)
	if err != nil {
		return fmt.Errorf("mesh: cannot sign announcement: %w", err)
	}
	if a.raw, err = e.Marshal(); err != nil {
		return fmt.Errorf("mesh: cannot encode announcement: %w", err)
	}
	return nil
}

// openAnnouncement checks and decodes an announcement that came from anywhere. Nobody
// may change what it returns, for whom it was opened before has it too.
func openAnnouncement(raw []byte) (*announcement, error) {
	if len(raw) > maxAnnouncement {
		return nil, fmt.Errorf("mesh: announcement of %d bytes, want at most %d", len(raw), maxAnnouncement)
	}
	if a, ok := goodAnnouncements.get(raw); ok {
		return a, nil
	}
	a := &announcement{raw: bytes.Clone(raw)}
	e, err := record.ConsumeTypedEnvelope(raw, a)
	if err != nil {
		return nil, fmt.Errorf("mesh: announcement: %w", err)
	}
	if !bytes.Equal(e.PayloadType, envelopeCodec) {
		return nil, errors.New("mesh: announcement of another type")
	}
	if e.PublicKey.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("mesh: announcement signed with %s, want Ed25519", e.PublicKey.Type())
	}
	if a.ID, err = peer.IDFromPublicKey(e.PublicKey); err != nil {
		return nil, fmt.Errorf("mesh: announcement: %w", err)
	}
	goodAnnouncements.put(raw, a)
	return a, nil
}

// newer orders the announcements of one peer: a later start wins, then a later
// renewal, then bytes, so that any two orders of arrival end alike.
func (a *announcement) newer(b *announcement) bool {
	switch {
	case !a.Since.Equal(b.Since):
		return a.Since.After(b.Since)
	case !a.Expires.Equal(b.Expires):
		return a.Expires.After(b.Expires)
	}
	return bytes.Compare(a.raw, b.raw) > 0
}
