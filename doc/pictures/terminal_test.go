package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	var b bytes.Buffer
	if err := draw(&b, "peer launch -n 2", []string{"[0] a < b", "[7] c", "plain", ""}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<title>peer launch -n 2</title>`, `<tspan class="p">$ peer launch -n 2</tspan>`,
		`<tspan class="r0">[0]</tspan> a &lt; b`, `<tspan class="r1">[7]</tspan> c`, ">plain<", `viewBox="0 0 184 132"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, b.String())
		}
	}
	wellFormed(t, b.String())
}

// TestDrawLong leaves out the middle.
func TestDrawLong(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	var b bytes.Buffer
	if err := draw(&b, "x", lines); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "<text "); got != maxLines+1 {
		t.Errorf("%d lines", got)
	}
	for _, want := range []string{"line 0<", ">…<", "line 99<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// TestPictures wants those that are here to be small and whole.
func TestPictures(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(e.Name())
		if err != nil || len(data) > 200<<10 {
			t.Errorf("%s: %d bytes, %v", e.Name(), len(data), err)
		}
		if strings.HasSuffix(e.Name(), ".svg") {
			wellFormed(t, string(data))
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}
