package main

import (
	"io"
	"os"
	"regexp"
)

// A rank whose error ends a world stays until the others have heard of it. They say whose
// it was and exit, perhaps before that rank does: of the children that have failed the
// first to end need not be the first to have failed. What a child says last on stderr is
// its error, which tells.

// blamed is how errors name the peer of the rank at fault: package mesh's, and those
// that have been identified.
var blamed = regexp.MustCompile(`\brank \d+ (?:is |\()(12D3KooW\w+)\)`)

// maxWords is how much is kept of the end of a longer last line at least, in bytes; and at
// most twice as much.
const maxWords = 4 << 10

// lastWords keep the last line that is written to them and is not empty.
type lastWords struct {
	line  []byte
	ended bool // the line: the next byte begins another
}

// Write never fails.
func (l *lastWords) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n' || c == '\r':
			l.ended = true
			continue
		case l.ended:
			l.line, l.ended = l.line[:0], false
		case len(l.line) >= 2*maxWords:
			l.line = l.line[:copy(l.line, l.line[maxWords:])]
		}
		l.line = append(l.line, c)
	}
	return len(p), nil
}

func (l *lastWords) said() string { return string(l.line) }

// lastIn is the last line of a file, or nothing if it cannot be read: whom it names is
// then not known, which is no error.
func lastIn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	var words lastWords
	if _, err := io.Copy(&words, io.NewSectionReader(f, max(0, size-maxWords), maxWords)); err != nil {
		return ""
	}
	return words.said()
}

// culprit is the failure that the first one followed from: that of the child which its
// last line names, if that has failed, too, and names no other. It is first itself if
// that is no child's, or if those named have not failed or name each other.
func (c *crew) culprit(first error, failures map[int]*childError) error {
	failure, ok := first.(*childError)
	if !ok {
		return first
	}
	for range failures {
		next, ok := failures[c.names(failure.rank-c.first)]
		switch {
		case !ok:
			return first
		case next == failure:
			return failure
		}
		failure = next
	}
	return first
}

// names is the child whose peer the last line of a child names as the one at fault, or
// that child itself if it names nobody. It is −1 if the peer is not of this crew.
func (c *crew) names(child int) int {
	if c.said[child] == nil {
		return child
	}
	all := blamed.FindAllStringSubmatch(c.said[child](), -1)
	if len(all) == 0 {
		return child
	}
	for i, id := range c.ids {
		if id == all[len(all)-1][1] {
			return i
		}
	}
	return -1
}
