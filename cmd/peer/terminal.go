package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// terminal reports whether w is a terminal, and how many columns it has.
func terminal(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 80
	}
	return columns, true
}

// palette is one colour a rank, over and over; none of them is a terminal's
// usual foreground or background.
var palette = [...]color.Attribute{
	color.FgCyan, color.FgYellow, color.FgGreen, color.FgMagenta, color.FgBlue, color.FgRed,
	color.FgHiCyan, color.FgHiYellow, color.FgHiGreen, color.FgHiMagenta, color.FgHiBlue, color.FgHiRed,
}

// rankPrefix is what stands before each line of a rank: "[2] ", in the rank's
// colour where w is a terminal and NO_COLOR (https://no-color.org) is not set.
func rankPrefix(w io.Writer, rank int) string {
	prefix := fmt.Sprintf("[%d]", rank)
	if _, ok := terminal(w); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		c := color.New(palette[rank%len(palette)])
		c.EnableColor()
		prefix = c.Sprint(prefix)
	}
	return prefix + " "
}
