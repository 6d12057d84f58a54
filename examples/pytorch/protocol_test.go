package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// requests are one of each kind, with the bytes that README and peermesh.py have.
var requests = map[string]request{
	"H\x01\x00\x00\x00":                                     {kind: kindHello, n: 1},
	"S\x00\x10\x00\x00\x00\x00\x00\x00":                     {kind: kindShare, n: 4096},
	"R\x01\x01\x07\x00\x00\x00\x00\x00\x00\x00":             {kind: kindReduce, dtype: tensor.Float32, op: opAverage, n: 7},
	"B\x04\x02\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00": {kind: kindBroadcast, dtype: tensor.Int64, src: 2, n: 5},
	"W": {kind: kindBarrier},
}

func TestDecode(t *testing.T) {
	for text, want := range requests {
		got, err := decode([]byte(text))
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
		if back := want.encode(); string(back) != text {
			t.Errorf("%+v is %q, want %q", want, back, text)
		}
	}
}

// malformed are payloads that are no requests, and what is said of them.
var malformed = map[string]string{
	"":                                  "an empty request",
	"Q":                                 "the unknown kind 'Q'",
	"H\x01":                             "'H' of 2 bytes, want 5",
	"H\x02\x00\x00\x00":                 "version 2 of the protocol, want 1",
	"W\x00":                             "'W' of 2 bytes, want 1",
	"S\x00\x00\x00\x00\x00\x00\x00\x00": "0 bytes to share",
	"S\x00\x00\x00\x00\x00\x00\x00\x80": "9223372036854775808 bytes to share",
	"R\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00":             "0 elements of float32",
	"R\x01\x04\x01\x00\x00\x00\x00\x00\x00\x00":             "the unknown reduction 4",
	"R\x63\x00\x01\x00\x00\x00\x00\x00\x00\x00":             "the unknown element type 99",
	"R\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff":             "18446744073709551615 elements of float64",
	"B\x01\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00": "a broadcast from rank 4294967295",
	"B\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10": "1152921504606846976 elements of float32",
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range malformed {
		if r, err := decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; want %q", text, r, err, want)
		}
	}
}

// What decodes is within the bounds, and encodes to the bytes that it came from.
func FuzzDecode(f *testing.F) {
	for text := range requests {
		f.Add([]byte(text))
	}
	for text := range malformed {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := decode(p)
		if err != nil {
			return
		}
		if back := r.encode(); !bytes.Equal(back, p) {
			t.Errorf("%q is %+v, which is %q", p, r, back)
		}
		if r.n > maxShared {
			t.Errorf("%q asks for %d", p, r.n)
		}
		if r.kind == kindReduce || r.kind == kindBroadcast {
			if bytes := r.n * uint64(r.dtype.Size()); bytes > maxShared {
				t.Errorf("%q is about %d bytes", p, bytes)
			}
		}
	})
}

// A frame is read as it was written, whatever it comes in, and no further.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00W"))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) == 0 {
			return
		}
		r := bytes.NewReader(p[1:])
		payload, err := readFrame(p[0], r)
		if err != nil {
			return
		}
		if whole := frame(payload); !bytes.Equal(whole, p[:len(p)-r.Len()]) {
			t.Errorf("%q has the frame %q", p, whole)
		}
	})
}

func TestReadFrame(t *testing.T) {
	read := func(text string) ([]byte, error) { return readFrame(text[0], strings.NewReader(text[1:])) }
	if p, err := read("\x02\x00\x00\x00abc"); err != nil || string(p) != "ab" {
		t.Errorf("got %q, %v", p, err)
	}
	for _, text := range []string{"\x02", "\x02\x00\x00\x00", "\x02\x00\x00\x00a"} {
		if _, err := read(text); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, n := range []uint32{0, maxFrame + 1, 1 << 31} {
		head := binary.LittleEndian.AppendUint32(nil, n)
		if _, err := read(string(head)); err == nil || !strings.Contains(err.Error(), "want 1 to 4096") {
			t.Errorf("a length of %d: got %v", n, err)
		}
	}
}

// An error of any length fits into the last answer.
func TestFailure(t *testing.T) {
	for _, n := range []int{0, 10, maxFrame - 1, maxFrame, 1 << 16} {
		text := strings.Repeat("x", n)
		p := failure(errors.New(text))
		got, err := readFrame(p[0], bytes.NewReader(p[1:]))
		if err != nil || got[0] != kindError || string(got[1:]) != text[:min(n, maxFrame-1)] {
			t.Errorf("an error of %d bytes becomes one of %d, %v", n, len(got)-1, err)
		}
	}
}
