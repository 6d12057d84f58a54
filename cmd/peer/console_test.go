package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// TestLineWriter feeds text in pieces and compares what arrives.
func TestLineWriter(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name   string
		bars   bool
		pieces []string
		want   string
	}{
		{"a line", false, []string{"one\n"}, "> one\n"},
		{"lines in a piece", false, []string{"one\ntwo\n"}, "> one\n> two\n"},
		{"a line in pieces", false, []string{"o", "n", "e\nt", "wo\n"}, "> one\n> two\n"},
		{"no end", false, []string{"one\ntwo"}, "> one\n> two\n"},
		{"empty lines", false, []string{"\n\n"}, "> \n> \n"},
		{"DOS lines", false, []string{"one\r\ntwo\r\n"}, "> one\n> two\n"},
		{"too long", false, []string{long + "y\n"}, "> " + long + "y\n"},
		{"far too long", false, []string{long, "y\n"}, "> " + long + "\n> y\n"},
		{"bars not wanted", false, []string{"\r10 %", "\r20 %", "\rdone\n"}, "> done\n"},
		{"only bars, not wanted", false, []string{"\r10 %", "\r20 %\r"}, ""},
		{"a bar", true, []string{"\r10 %", "\r20 %"}, eraseLine + "> 10 %" + eraseLine + "> 20 %"},
		{"a bar twice the same", true, []string{"\r10 %", "\r10 %"}, eraseLine + "> 10 %"},
		{"a bar, then a line", true, []string{"\r10 %", "\rdone\n"}, eraseLine + "> 10 %" + eraseLine + "> done\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			w := new(console).writer(&b, "> ", test.bars)
			for _, piece := range test.pieces {
				if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			// A bar that is on the screen at the end is taken away.
			want := test.want
			if test.bars && !strings.HasSuffix(want, "\n") {
				want += eraseLine
			}
			if b.String() != want {
				t.Errorf("got  %q\nwant %q", b.String(), want)
			}
		})
	}
}

// TestBarStaysBelow writes lines past another writer's bar.
func TestBarStaysBelow(t *testing.T) {
	var b strings.Builder
	con := new(console)
	bar, other := con.writer(&b, "[0] ", true), con.writer(&b, "[1] ", true)
	fmt.Fprint(bar, "\r50 %")
	fmt.Fprint(other, "hello\n")
	want := eraseLine + "[0] 50 %" + eraseLine + "[1] hello\n" + "[0] 50 %"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

// TestLinesStayWhole has many writers at once.
func TestLinesStayWhole(t *testing.T) {
	const writers, lines = 8, 50
	var b strings.Builder
	con := new(console)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			w := con.writer(&b, fmt.Sprintf("[%d] ", i), false)
			for range lines {
				io.WriteString(w, "some")
				io.WriteString(w, "thing\n")
			}
		})
	}
	all.Wait()
	got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(got) != writers*lines {
		t.Fatalf("%d lines, want %d", len(got), writers*lines)
	}
	for _, line := range got {
		if !strings.HasSuffix(line, "] something") || len(line) != len("[0] something") {
			t.Fatalf("a torn line: %q", line)
		}
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestLineWriterPassesErrorsOn(t *testing.T) {
	w := new(console).writer(full{}, "", true)
	for _, text := range []string{"line\n", "\rbar"} {
		if _, err := io.WriteString(w, text); !errors.Is(err, errFull) {
			t.Errorf("writing %q: %v, want %v", text, err, errFull)
		}
		w.pending = nil
	}
}
