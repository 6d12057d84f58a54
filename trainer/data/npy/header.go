package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/tensorfile"
)

const (
	magic = "\x93NUMPY"

	// MaxHeader bounds the text of a header, in bytes: NumPy's own are about a hundred.
	MaxHeader = 1 << 16
	// MaxDims bounds the dimensions of an array. NumPy has 64.
	MaxDims = 64

	align = 64 // of the elements, in what is written
)

// ErrFormat is wrapped by the errors of what is not a file of the format, or not a
// whole one.
var ErrFormat = errors.New("malformed")

func malformed(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, a...)...)
}

// kinds are the element types, by the letters that stand for them.
var kinds = map[string]tensor.DType{
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
	"b1": tensor.Bool,
}

// A header is what a file says of its array.
type header struct {
	dtype   tensor.DType
	big     bool // big-endian
	fortran bool // the first dimension is the fastest
	shape   []int
	data    int64 // where the elements begin
}

// readHeader reads the header of a file of size bytes and checks that the elements
// are there.
func readHeader(r io.ReaderAt, size int64) (header, error) {
	var p [12]byte
	if err := tensorfile.ReadFull(r, p[:min(size, int64(len(p)))], 0); err != nil {
		return header{}, err
	}
	if string(p[:len(magic)]) != magic || size < int64(len(p)) {
		return header{}, malformed("it does not begin as an NPY file")
	}
	var text int64
	start := int64(10)
	switch version := [2]byte{p[6], p[7]}; version {
	case [2]byte{1, 0}:
		text = int64(binary.LittleEndian.Uint16(p[8:]))
	case [2]byte{2, 0}, [2]byte{3, 0}: // they differ in the encoding of names that are refused anyway
		text = int64(binary.LittleEndian.Uint32(p[8:]))
		start = 12
	default:
		return header{}, malformed("version %d.%d: want 1.0, 2.0 or 3.0", version[0], version[1])
	}
	if text > MaxHeader || text > size-start {
		return header{}, malformed("a header of %d bytes in a file of %d: at most %d", text, size, MaxHeader)
	}
	b := make([]byte, text)
	if err := tensorfile.ReadFull(r, b, start); err != nil {
		return header{}, err
	}
	h, err := parse(string(b))
	if err != nil {
		return header{}, err
	}
	h.data = start + text
	n, ok := tensorfile.Size(h.dtype, h.shape)
	if !ok || n > size-h.data {
		return header{}, malformed("an array %v%v in %d bytes", h.dtype, h.shape, size-h.data)
	}
	if n < size-h.data {
		return header{}, malformed("%d bytes after the array", size-h.data-n)
	}
	return h, nil
}

// parse reads the dictionary of a header, a literal of Python of three keys:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
func parse(text string) (header, error) {
	var h header
	s := scanner{text: text}
	seen := make(map[string]bool)
	s.want('{')
	for s.err == nil && !s.take('}') {
		key := s.quoted()
		if s.want(':'); seen[key] {
			s.fail()
		}
		seen[key] = true
		switch key {
		case "descr":
			h.describe(s.quoted(), &s)
		case "fortran_order":
			h.fortran = s.boolean()
		case "shape":
			h.shape = s.tuple()
		default:
			s.fail()
		}
		if !s.take(',') && !s.ahead('}') {
			s.fail()
		}
	}
	s.space()
	if s.err != nil || s.at < len(text) || len(seen) != 3 {
		return header{}, malformed("the header %.200q", text)
	}
	if !h.dtype.Valid() {
		return header{}, malformed("elements of a type that is not read: %.200q", text)
	}
	return h, nil
}

// describe takes an element type apart: its byte order and its kind.
func (h *header) describe(descr string, s *scanner) {
	if len(descr) == 0 {
		s.fail()
		return
	}
	order, kind := descr[0], descr[1:]
	if descr == "?" {
		order, kind = '|', "b1"
	}
	h.dtype = kinds[kind]
	h.big = order == '>'
	if !strings.ContainsRune("<>|=", rune(order)) || order == '|' && h.dtype.Size() > 1 {
		h.dtype = 0
	}
}

// A scanner reads what there is of Python in a header.
type scanner struct {
	text string
	at   int
	err  error
}

func (s *scanner) fail() { s.err = ErrFormat }

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) ahead(c byte) bool {
	s.space()
	return s.at < len(s.text) && s.text[s.at] == c
}

func (s *scanner) take(c byte) bool {
	if !s.ahead(c) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) want(c byte) {
	if !s.take(c) {
		s.fail()
	}
}

// until takes all characters up to one that is none of the set.
func (s *scanner) until(set string) string {
	from := s.at
	for s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) < 0 {
		s.at++
	}
	return s.text[from:s.at]
}

// quoted reads a string in either quotes. None of those that are wanted has an
// escape in it.
func (s *scanner) quoted() string {
	quote := byte('\'')
	if s.ahead('"') {
		quote = '"'
	}
	s.want(quote)
	word := s.until(string(quote) + "\\")
	s.want(quote)
	return word
}

func (s *scanner) boolean() bool {
	s.space()
	word := s.until(" ,}\t\r\n")
	if word != "True" && word != "False" {
		s.fail()
	}
	return word == "True"
}

// tuple reads (), (2,) or (2, 3): what Python 2 wrote as 2L counts too.
func (s *scanner) tuple() []int {
	shape := []int{}
	comma := false
	s.want('(')
	for s.err == nil && !s.take(')') {
		s.space()
		word := strings.TrimSuffix(s.until(",) \t\r\n"), "L")
		d, err := strconv.Atoi(word)
		if err != nil || d < 0 || word[0] == '+' || len(shape) == MaxDims {
			s.fail()
		}
		shape = append(shape, d)
		if comma = s.take(','); !comma && !s.ahead(')') {
			s.fail()
		}
	}
	if len(shape) == 1 && !comma { // (2) is a number
		s.fail()
	}
	return shape
}
