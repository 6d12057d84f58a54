// Terminal runs a command and draws what it prints, as an SVG that is light or dark as the
// reader's screen is.
//
//	go run ./doc/pictures -o doc/pictures/terminal.svg -- go run ./cmd/peer launch -n 4
//
// What goes to stderr, the log, is passed on and not drawn. [N] at the start of a line is a
// rank, and has a colour, as it has on a terminal.
package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Sizes in pixels: of a character of the font, of a line, and of the margin.
const (
	charWidth, lineHeight = 8.43, 20
	margin                = 16
	fontSize              = 14
	ranksColoured         = 6
)

// maxLines bounds a picture; the lines between its first and last are left out.
const maxLines = 24

const style = `<style>
  rect { fill: #f6f8fa; stroke: #d0d7de } text { fill: #24292f; font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
  .p { font-weight: bold } .r0 { fill: #0b6e84 } .r1 { fill: #8a5a00 } .r2 { fill: #1a7f37 } .r3 { fill: #8250df } .r4 { fill: #0550ae } .r5 { fill: #b3261e }
  @media (prefers-color-scheme: dark) {
    rect { fill: #161b22; stroke: #30363d } text { fill: #e6edf3 }
    .r0 { fill: #56d4dd } .r1 { fill: #e3b341 } .r2 { fill: #56d364 } .r3 { fill: #d2a8ff } .r4 { fill: #79c0ff } .r5 { fill: #ff7b72 }
  }
</style>
`

// draw writes a command and its lines.
func draw(w io.Writer, command string, lines []string) error {
	if cut := len(lines) - maxLines; cut > 0 {
		head := maxLines / 2
		lines = append(append(append([]string{}, lines[:head]...), "…"), lines[head+cut+1:]...)
	}
	lines = append([]string{"$ " + command}, lines...)
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(line))
	}
	width, height := 2*margin+charWidth*float64(columns), 2*margin+lineHeight*len(lines)
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" role=\"img\">\n", width, height)
	fmt.Fprintf(b, "<title>%s</title>\n%s", escape(command), style)
	fmt.Fprintf(b, "<rect x=\"0.5\" y=\"0.5\" width=\"%.0f\" height=\"%d\" rx=\"8\"/>\n", width-1, height-1)
	for i, line := range lines {
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+lineHeight*i+fontSize, coloured(line, i == 0))
	}
	fmt.Fprintln(b, "</svg>")
	_, err := w.Write(b.Bytes())
	return err
}

var rank = regexp.MustCompile(`^\[(\d+)\]`)

// coloured is a line with its rank's prefix in that rank's colour.
func coloured(line string, typed bool) string {
	if typed {
		return `<tspan class="p">` + escape(line) + `</tspan>`
	}
	prefix := rank.FindString(line)
	if prefix == "" {
		return escape(line)
	}
	n := int(prefix[len(prefix)-2]-'0') % ranksColoured
	return fmt.Sprintf(`<tspan class="r%d">%s</tspan>%s`, n, prefix, escape(line[len(prefix):]))
}

func escape(s string) string {
	b := new(strings.Builder)
	_ = xml.EscapeText(b, []byte(s)) // a Builder does not fail
	return b.String()
}

func main() {
	out := flag.String("o", "terminal.svg", "file to write")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: go run ./doc/pictures -o FILE -- COMMAND")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cmd := exec.CommandContext(ctx, flag.Arg(0), flag.Args()[1:]...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		log.Fatal(err)
	}
	picture := new(bytes.Buffer)
	if err := draw(picture, strings.Join(flag.Args(), " "), strings.Split(strings.TrimRight(string(text), "\n"), "\n")); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, picture.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
