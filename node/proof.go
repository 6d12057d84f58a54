package node

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// The proof that two peers share a secret; SPEC.md has it byte by byte. The side
// that dialled shows its tag first: whoever merely connects to us learns nothing
// that depends on the secret, not even something to guess at.
const (
	proofProtocol = "/peermesh/secret/1"
	nonceSize     = 32
	tagSize       = sha256.Size

	verdictNo  byte = 0
	verdictYes byte = 1

	askerLabel, answererLabel = "peermesh proof 1: asker", "peermesh proof 1: answerer"
)

// hello is what a stream, or a connection, of any libp2p program begins with:
// the name of multistream-select, after its length.
const hello = "\x13/multistream/1.0.0\n"

// greeting selects the protocol in the manner of multistream-select, so that a
// peer that does not know it says so.
const greeting = hello + "\x13" + proofProtocol + "\n"

// errTold is ErrSecret after the other side has been sent the verdict.
var errTold = fmt.Errorf("%w: refused", ErrSecret)

// errUnexpected is what expect returns of other bytes than the expected ones.
var errUnexpected = errors.New("not the bytes of this protocol")

// expect reads want, and stops at the first byte that differs: a stranger that
// sends less than that and waits is not waited for.
func expect(r io.Reader, want string) error {
	var buf [len(greeting)]byte
	for len(want) > 0 {
		n, err := r.Read(buf[:min(len(want), len(buf))])
		if string(buf[:n]) != want[:n] {
			return errUnexpected
		}
		want = want[n:]
		if err != nil && len(want) > 0 {
			return err
		}
	}
	return nil
}

// A transcript is what both tags vouch for: who asks whom, and that it is now.
// The IDs are those that the connection has authenticated, so that nobody can
// pass a proof on from one connection to another.
type transcript struct {
	asker, answerer           peer.ID
	askerNonce, answererNonce [nonceSize]byte
}

// tag is HMAC-SHA-256 over the label and the transcript. Labels keep a tag from
// being sent back as the other side's.
func (t *transcript) tag(key []byte, label string) []byte {
	h := hmac.New(sha256.New, key)
	for _, s := range []string{label, string(t.asker), string(t.answerer)} {
		h.Write([]byte{byte(len(s))})
		io.WriteString(h, s)
	}
	h.Write(t.askerNonce[:])
	h.Write(t.answererNonce[:])
	return h.Sum(nil)
}

// ask is the dialler's side.
func ask(s io.ReadWriter, key []byte, self, other peer.ID) error {
	t := transcript{asker: self, answerer: other}
	rand.Read(t.askerNonce[:])
	if _, err := s.Write(append([]byte(greeting), t.askerNonce[:]...)); err != nil {
		return err
	}
	var reset *network.StreamError // of who took the nonce for the name of a protocol
	switch err := expect(s, greeting); {
	case errors.Is(err, errUnexpected), errors.As(err, &reset) && reset.Remote && reset.ErrorCode != codeNotAllowed:
		return &refusal{ErrSecret, "it has no secret, and this node has one"}
	case err != nil:
		return err
	}
	if _, err := io.ReadFull(s, t.answererNonce[:]); err != nil {
		return err
	}
	if _, err := s.Write(t.tag(key, askerLabel)); err != nil {
		return err
	}
	var reply [1 + tagSize]byte
	if _, err := io.ReadFull(s, reply[:1]); err != nil {
		return err
	}
	if reply[0] != verdictYes {
		return &refusal{ErrSecret, "it has another secret"}
	}
	if _, err := io.ReadFull(s, reply[1:]); err != nil {
		return err
	}
	if !hmac.Equal(reply[1:], t.tag(key, answererLabel)) {
		return &refusal{ErrSecret, "it pretends to share this node's secret"}
	}
	return nil
}

// answer is the side that was dialled.
func answer(s io.ReadWriter, key []byte, self, other peer.ID) error {
	t := transcript{asker: other, answerer: self}
	switch err := expect(s, greeting); {
	case errors.Is(err, errUnexpected):
		return &refusal{ErrSecret, "it has no secret"}
	case err != nil:
		return fmt.Errorf("no proof of the secret: %w", err)
	}
	if _, err := io.ReadFull(s, t.askerNonce[:]); err != nil {
		return fmt.Errorf("no proof of the secret: %w", err)
	}
	rand.Read(t.answererNonce[:])
	if _, err := s.Write(append([]byte(greeting), t.answererNonce[:]...)); err != nil {
		return err
	}
	var proof [tagSize]byte
	if _, err := io.ReadFull(s, proof[:]); err != nil {
		return fmt.Errorf("no proof of the secret: %w", err)
	}
	if !hmac.Equal(proof[:], t.tag(key, askerLabel)) {
		if _, err := s.Write([]byte{verdictNo}); err != nil {
			return err
		}
		return &refusal{errTold, "it has another secret"}
	}
	_, err := s.Write(bytes.Join([][]byte{{verdictYes}, t.tag(key, answererLabel)}, nil))
	return err
}
