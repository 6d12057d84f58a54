package main

import (
	"io"
	"strings"
	"testing"
)

// FuzzSize holds a size to what it says of itself: never negative, never more
// than can be computed with.
func FuzzSize(f *testing.F) {
	for _, text := range []string{"0", "4096", "1.5MiB", "9e99GiB", "0x1p4", "-1B", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s size
		if err := s.UnmarshalText([]byte(text)); err == nil && s < 0 {
			t.Errorf("%q is %d bytes", text, s)
		}
	})
}

// FuzzLineWriter writes the same text at once and in pieces: the lines that
// arrive must be the same, and each must have its prefix.
func FuzzLineWriter(f *testing.F) {
	f.Add("one\ntwo\r\nthree", uint8(3))
	f.Add("\r10 %\r20 %\rdone\n\n", uint8(1))
	f.Add("a\r\r\nb\r\n\r", uint8(2))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		var whole, pieces strings.Builder
		w := new(console).writer(&whole, "> ", false)
		p := new(console).writer(&pieces, "> ", false)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		for rest := text; rest != ""; {
			n := min(len(rest), int(step)+1)
			if _, err := io.WriteString(p, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if whole.String() != pieces.String() {
			t.Errorf("%q at once is %q, in steps of %d %q", text, whole.String(), int(step)+1, pieces.String())
		}
		for line := range strings.Lines(whole.String()) {
			if !strings.HasPrefix(line, "> ") || strings.Contains(line, "\r") {
				t.Errorf("%q became the line %q", text, line)
			}
		}
	})
}
