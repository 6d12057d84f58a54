package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// Lines are whole, whatever they are written in, and carry their rank.
func TestSpeaker(t *testing.T) {
	var b strings.Builder
	c := &console{w: &b}
	one, two := &speaker{to: c, prefix: "[1] "}, &speaker{to: c, prefix: "[2] "}
	for _, w := range []struct {
		s    *speaker
		text string
	}{{one, "a"}, {two, "x\ny"}, {one, "b\n\n"}, {two, "z"}, {one, ""}} {
		if n, err := io.WriteString(w.s, w.text); n != len(w.text) || err != nil {
			t.Errorf("%q: %d, %v", w.text, n, err)
		}
	}
	one.Close()
	two.Close()
	if want := "[2] x\n[1] ab\n[1] \n[2] yz\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// A line without end is not kept for ever.
func TestSpeakerLong(t *testing.T) {
	var b strings.Builder
	s := &speaker{to: &console{w: &b}}
	if _, err := s.Write(make([]byte, 2*maxLine+5)); err != nil {
		t.Fatal(err)
	}
	if b.Len() != 2*(maxLine+1) || len(s.rest) != 5 {
		t.Errorf("%d bytes written, %d kept", b.Len(), len(s.rest))
	}
}

func TestSpeakerError(t *testing.T) {
	full := errors.New("full")
	r, w := io.Pipe()
	r.CloseWithError(full)
	s := &speaker{to: &console{w: w}}
	if n, err := s.Write([]byte("a\n")); n == 2 || !errors.Is(err, full) {
		t.Errorf("%d, %v", n, err)
	}
}
