package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine bounds what is kept of a line that has not ended; a longer one is cut in two.
const maxLine = 64 << 10

// A console is where the programs of several ranks write whole lines, one at a time.
type console struct {
	mu sync.Mutex
	w  io.Writer
}

// A speaker writes one program's lines to a console, each after a prefix. Close writes
// the last, if it has no end.
type speaker struct {
	to     *console
	prefix string
	rest   []byte // of a line
}

func (s *speaker) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		room := maxLine - len(s.rest)
		if len(line) > room {
			line, rest, whole = p[:room], p[room:], true
		}
		s.rest = append(s.rest, line...)
		if whole {
			if err := s.flush(); err != nil {
				return n - len(p), err
			}
		}
		p = rest
	}
	return n, nil
}

func (s *speaker) flush() error {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	_, err := fmt.Fprintf(s.to.w, "%s%s\n", s.prefix, s.rest)
	s.rest = s.rest[:0]
	return err
}

func (s *speaker) Close() error {
	if len(s.rest) == 0 {
		return nil
	}
	return s.flush()
}
