package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	// maxLine bounds what is kept of a line that has not ended; a longer one is
	// passed on in parts.
	maxLine = 64 << 10
	// eraseLine is the terminal's way to the start of an emptied line.
	eraseLine = "\r\x1b[K"
)

// A console is one terminal, or what stands in for it, that several processes
// write to. It keeps their lines whole, and below them one bar: a line that is
// drawn over and over (a progress bar), always last, never in the way.
type console struct {
	mu  sync.Mutex
	bar string // as on the screen now; empty: none
}

// writer returns a writer whose lines arrive at w whole, each after prefix.
// Text that begins with a carriage return is a bar: it is drawn when bars is
// set, and dropped otherwise.
func (c *console) writer(w io.Writer, prefix string, bars bool) *lineWriter {
	return &lineWriter{console: c, w: w, prefix: prefix, bars: bars}
}

// line writes a whole line above the bar.
func (c *console) line(w io.Writer, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != "" {
		text = eraseLine + text + "\n" + c.bar
	} else {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// draw replaces the bar; an empty text takes it away.
func (c *console) draw(w io.Writer, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text == c.bar {
		return nil
	}
	c.bar = text
	_, err := io.WriteString(w, eraseLine+text)
	return err
}

// A lineWriter is one process's way to a console. It is for one goroutine.
type lineWriter struct {
	console *console
	w       io.Writer
	prefix  string
	bars    bool
	pending []byte // a line that has not ended
}

// Write passes on the lines that p ends, and keeps the rest for the next call.
// It is called from one goroutine, exec's, which copies a child's output.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.pending = append(l.pending, p...)
	for {
		i := bytes.IndexByte(l.pending, '\n')
		if i < 0 && len(l.pending) < maxLine {
			return len(p), l.redraw()
		}
		text, rest := l.pending, []byte(nil)
		if i >= 0 {
			text, rest = l.pending[:i], l.pending[i+1:]
		}
		if err := l.emit(text); err != nil {
			return 0, err
		}
		l.pending = append(l.pending[:0], rest...)
	}
}

// Close passes on a last line that had no end, and takes the bar away.
func (l *lineWriter) Close() error {
	text := l.pending
	l.pending = nil
	switch {
	case len(text) == 0:
		return nil
	case bytes.IndexByte(text, '\r') < 0:
		return l.console.line(l.w, l.prefix+string(text))
	case l.bars:
		return l.console.draw(l.w, "")
	}
	return nil
}

// emit writes one whole line. What stood before a carriage return was a bar,
// which the line has overwritten.
func (l *lineWriter) emit(text []byte) error {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if i := bytes.LastIndexByte(text, '\r'); i >= 0 {
		if l.bars {
			if err := l.console.draw(l.w, ""); err != nil {
				return err
			}
		}
		text = text[i+1:]
		if len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
	}
	return l.console.line(l.w, l.prefix+string(text))
}

// redraw shows the newest state of a pending bar, and forgets the older ones. A
// carriage return at the very end says nothing yet: it may belong to a "\r\n".
func (l *lineWriter) redraw() error {
	body := bytes.TrimSuffix(l.pending, []byte("\r"))
	i := bytes.LastIndexByte(body, '\r')
	if i < 0 {
		return nil
	}
	text := strings.TrimRight(string(body[i+1:]), " ")
	l.pending = append(l.pending[:0], l.pending[i:]...)
	if !l.bars {
		return nil
	}
	if text != "" {
		text = l.prefix + text
	}
	return l.console.draw(l.w, text)
}
