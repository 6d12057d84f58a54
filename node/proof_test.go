package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/libp2p/go-libp2p/core/peer"
)

// both runs the two sides against each other.
func both(askKey, answerKey []byte, x, y peer.ID, seenByX, seenByY peer.ID) (asked, answered error) {
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		err := answer(b, answerKey, y, seenByY)
		b.Close()
		done <- err
	}()
	asked = ask(a, askKey, x, seenByX)
	a.Close()
	return asked, <-done
}

func TestProof(t *testing.T) {
	const x, y, z = peer.ID("x"), peer.ID("yy"), peer.ID("zzz")
	key, other := derive(ours, proofInfo), derive(theirs, proofInfo)
	if asked, answered := both(key, key, x, y, y, x); asked != nil || answered != nil {
		t.Errorf("the same secret: %v, %v", asked, answered)
	}
	if asked, answered := both(key, other, x, y, y, x); !errors.Is(asked, ErrSecret) || !errors.Is(answered, ErrSecret) {
		t.Errorf("two secrets: %v, %v", asked, answered)
	}
	// A stranger z between the two can pass on every byte, but not its own ID.
	if asked, answered := both(key, key, x, y, z, z); !errors.Is(asked, ErrSecret) || !errors.Is(answered, ErrSecret) {
		t.Errorf("passed on: %v, %v", asked, answered)
	}
}

// What is sent back cannot stand for an answer.
func TestProofIsNoMirror(t *testing.T) {
	const x = peer.ID("x")
	key := derive(ours, proofInfo)
	a, b := net.Pipe()
	go func() {
		defer b.Close()
		hello := make([]byte, len(greeting)+nonceSize)
		if _, err := io.ReadFull(b, hello); err != nil {
			t.Error(err)
		}
		b.Write(hello)
		tag := make([]byte, tagSize)
		if _, err := io.ReadFull(b, tag); err != nil {
			t.Error(err)
		}
		b.Write([]byte{verdictYes})
		b.Write(tag)
	}()
	if err := ask(a, key, x, x); !errors.Is(err, ErrSecret) {
		t.Errorf("believed its own tag: %v", err)
	}
	a.Close()
}

// The tags in SPEC.md.
func TestProofGolden(t *testing.T) {
	tr := transcript{asker: "asker", answerer: "answerer"}
	for i := range nonceSize {
		tr.askerNonce[i], tr.answererNonce[i] = byte(i), byte(255-i)
	}
	key := derive([]byte("0123456789abcdef"), proofInfo)
	for label, want := range map[string]string{
		askerLabel:    specValue(t, "asker's tag"),
		answererLabel: specValue(t, "answerer's tag"),
	} {
		if got := hex.EncodeToString(tr.tag(key, label)); got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
	}
	if got, want := hex.EncodeToString(key), specValue(t, "key of the proof"); got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	if got, want := hex.EncodeToString(derive([]byte("0123456789abcdef"), pskInfo)), specValue(t, "key of TCP"); got != want {
		t.Errorf("pre-shared key %s, want %s", got, want)
	}
}

func TestExpect(t *testing.T) {
	for _, x := range []struct {
		in   string
		want error
	}{
		{greeting, nil},
		{greeting + "more", nil},
		{greeting[:len(greeting)-1], io.EOF},
		{"", io.EOF},
		{"\x13/multistream/1.0.0\n\x0f/ipfs/id/1.0.0\n", errUnexpected},
		{"GET / HTTP/1.1\r\n\r\n", errUnexpected},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(x.in), "byte by byte": iotest.OneByteReader(strings.NewReader(x.in)),
			"error with data": iotest.DataErrReader(strings.NewReader(x.in)),
		} {
			if err := expect(r, greeting); !errors.Is(err, x.want) || err == nil != (x.want == nil) {
				t.Errorf("%q %s: %v, want %v", x.in, name, err, x.want)
			}
		}
	}
	// A stranger that waits after the first wrong byte is not waited for.
	r := io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("read on")))
	if err := expect(r, greeting); err != errUnexpected {
		t.Errorf("waited for more: %v", err)
	}
}

// duplex reads what a stranger sends and forgets what it is told.
type duplex struct {
	io.Reader
	io.Writer
}

// Nobody gets in without the secret, whatever it sends, in either part.
func FuzzProof(f *testing.F) {
	nonce := strings.Repeat("n", nonceSize)
	f.Add([]byte(greeting+nonce+strings.Repeat("t", tagSize)), true)
	f.Add([]byte(greeting+nonce+"\x01"+strings.Repeat("t", tagSize)), false)
	f.Add([]byte(greeting+nonce+"\x00"), false)
	f.Add([]byte(hello+"\x03na\n"), false)
	f.Add([]byte("GET / HTTP/1.1\r\n"), true)
	key := derive(ours, proofInfo)
	f.Fuzz(func(t *testing.T, data []byte, asked bool) {
		part := ask
		if asked {
			part = answer
		}
		for _, r := range []io.Reader{bytes.NewReader(data), iotest.HalfReader(bytes.NewReader(data))} {
			if part(duplex{r, io.Discard}, key, "x", "y") == nil {
				t.Errorf("%q is in", data)
			}
		}
	})
}
