// Package table reads tables of numbers from CSV files.
//
//	f, err := os.Open("housing.csv")
//	t, err := table.Read[float32](f, table.Config{Columns: []string{"rooms", "age", "price"}})
//
// A Table is a data.Dataset of rows. With the target among the columns, as above, a
// Collate cuts it off; [Table.Select] makes a table of some columns, and data.Zip
// pairs two of them.
//
// The file is what encoding/csv reads: RFC 4180, and lines that are empty are
// skipped, and so is a byte order mark. The first line names the columns, unless
// Config.NoHeader; fields are what
// strconv.ParseFloat takes, with spaces around them. What is no number is an *[Error]
// that says in which line and column.
package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// MaxColumns bounds the columns of a file.
	MaxColumns = 1 << 16
	// MaxCells bounds the numbers of a table.
	MaxCells = 1 << 30
)

// Config says how a file is read. The zero value reads all columns of a file with a
// header, separated by commas.
type Config struct {
	NoHeader bool     // columns are named "0", "1", …
	Columns  []string // those wanted, in this order; nil: all
	Comma    rune     // between fields; zero: a comma
	Comment  rune     // lines that begin with it are skipped; zero: none
	// Empty says what an empty field is: nil, an error; else that number, most
	// commonly NaN.
	Empty *float64
}

// NaN is for Config.Empty.
var NaN = func() *float64 { x := math.NaN(); return &x }()

// An Error is about one field or line of a file.
type Error struct {
	Line   int    // from 1, as an editor counts
	Column int    // from 1, in the file; 0: the line as a whole
	Name   string // of the column
	Err    error
}

func (e *Error) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("table: line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("table: line %d, column %d (%.50s): %v", e.Line, e.Column, e.Name, e.Err)
}

// Unwrap gives the reason, without the place.
func (e *Error) Unwrap() error { return e.Err }

// A Table is rows of numbers, one after the other.
type Table[F float32 | float64] struct {
	Names []string // of the columns
	Cells []F      // len(Names) a row

	rows int
}

// Len is the number of rows.
func (t *Table[F]) Len() int { return t.rows }

// At is row i, which shares the table's memory. It does not fail.
func (t *Table[F]) At(i int) ([]F, error) {
	n := len(t.Names)
	return t.Cells[i*n:][:n:n], nil
}

// Select is a copy of some columns, in that order.
func (t *Table[F]) Select(names ...string) (*Table[F], error) {
	places, err := find(t.Names, names)
	if err != nil {
		return nil, err
	}
	s := &Table[F]{Names: slices.Clone(names), Cells: make([]F, 0, t.rows*len(names)), rows: t.rows}
	for i := range t.rows {
		row, _ := t.At(i)
		for _, c := range places {
			s.Cells = append(s.Cells, row[c])
		}
	}
	return s, nil
}

// find gives the places of names among all.
func find(all, names []string) ([]int, error) {
	known := make(map[string]int, len(all))
	for i, name := range all {
		if _, twice := known[name]; twice {
			i = -1
		}
		known[name] = i
	}
	places := make([]int, len(names))
	for k, name := range names {
		i, ok := known[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("table: no column %q: there are %.20q", name, all)
		case i < 0:
			return nil, fmt.Errorf("table: several columns are named %q", name)
		}
		places[k] = i
	}
	return places, nil
}

// text is r without the mark that Excel, among others, puts before UTF-8.
func text(r io.Reader) io.Reader {
	const mark = "\ufeff"
	in := bufio.NewReader(r)
	if start, _ := in.Peek(len(mark)); string(start) == mark { // an error comes again
		_, _ = in.Discard(len(mark))
	}
	return in
}

// Read reads a whole file.
func Read[F float32 | float64](r io.Reader, c Config) (*Table[F], error) {
	in := csv.NewReader(text(r))
	in.ReuseRecord = true
	in.Comment = c.Comment
	if c.Comma != 0 {
		in.Comma = c.Comma
	}
	in.TrimLeadingSpace = !unicode.IsSpace(in.Comma) // else it would eat separators
	first, err := in.Read()
	if err == io.EOF {
		return nil, errors.New("table: the file is empty")
	}
	if err != nil {
		return nil, place(err)
	}
	if len(first) > MaxColumns {
		return nil, fmt.Errorf("table: %d columns: at most %d", len(first), MaxColumns)
	}
	names := make([]string, len(first)) // of the file's columns
	for i, name := range first {
		if names[i] = strings.Clone(strings.TrimSpace(name)); c.NoHeader {
			names[i] = strconv.Itoa(i)
		}
	}
	wanted, places := names, make([]int, len(names))
	for i := range places {
		places[i] = i
	}
	if c.Columns != nil {
		wanted = c.Columns
		if places, err = find(names, wanted); err != nil {
			return nil, err
		}
	}
	t := &Table[F]{Names: slices.Clone(wanted)}
	record := first
	if !c.NoHeader {
		record, err = in.Read()
	}
	for ; err == nil; record, err = in.Read() {
		if err := t.add(in, record, names, places, c); err != nil {
			return nil, err
		}
	}
	if err != io.EOF {
		return nil, place(err)
	}
	return t, nil
}

// add appends the wanted fields of a record.
func (t *Table[F]) add(in *csv.Reader, record, names []string, places []int, c Config) error {
	if len(places) > MaxCells-len(t.Cells) {
		return fmt.Errorf("table: more than %d numbers", MaxCells)
	}
	for _, i := range places {
		x, err := parse[F](record[i], c.Empty)
		if err != nil {
			line, _ := in.FieldPos(i)
			return &Error{Line: line, Column: i + 1, Name: names[i], Err: err}
		}
		t.Cells = append(t.Cells, x)
	}
	t.rows++
	return nil
}

// parse reads one field.
func parse[F float32 | float64](field string, empty *float64) (F, error) {
	field = strings.TrimSpace(field)
	if field == "" {
		if empty == nil {
			return 0, errors.New("the field is empty: say in Config.Empty what that is")
		}
		return F(*empty), nil
	}
	bits := 64
	if any(F(0)) == any(float32(0)) {
		bits = 32
	}
	x, err := strconv.ParseFloat(field, bits)
	if err != nil {
		return 0, fmt.Errorf("%.50q is no number of %d bits: %w", field, bits, errors.Unwrap(err))
	}
	return F(x), nil
}

// place makes an Error of one of encoding/csv's.
func place(err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return &Error{Line: p.Line, Err: p.Err}
	}
	return fmt.Errorf("table: %w", err)
}
