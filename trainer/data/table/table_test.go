package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"peermesh/trainer/data"
)

var _ data.Dataset[[]float32] = (*Table[float32])(nil)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		file string
		c    Config
		want string
	}{
		{"a,b\n1,2\n3,4\n", Config{}, "[a b] [[1 2] [3 4]]"},
		{"a,b\r\n1,2\r\n3,4", Config{}, "[a b] [[1 2] [3 4]]"},
		{"1,2\n\n3,4\n", Config{NoHeader: true}, "[0 1] [[1 2] [3 4]]"},
		{"a,b,c\n1,2,x\n", Config{Columns: []string{"b", "a", "b"}}, "[b a b] [[2 1 2]]"},
		{"1,x,3\n", Config{NoHeader: true, Columns: []string{"2"}}, "[2] [[3]]"},
		{"a;b\n1;2.5e1\n", Config{Comma: ';'}, "[a b] [[1 25]]"},
		{"# note\na\n# note\n1\n", Config{Comment: '#'}, "[a] [[1]]"},
		{"a,\"b, \"\"c\"\"\"\n\"1\", -inf \n", Config{}, `[a b, "c"] [[1 -Inf]]`},
		{"a,b\n,2\n", Config{Empty: NaN}, "[a b] [[NaN 2]]"},
		{"a\tb\n\t2\n", Config{Comma: '\t', Empty: NaN}, "[a b] [[NaN 2]]"},
		{" a , b \n", Config{}, "[a b] []"},
		{"a\n0x1p-2\n", Config{}, "[a] [[0.25]]"},
		{"\ufeff\"a\",b\n1,2\n", Config{Columns: []string{"a"}}, "[a] [[1]]"},
		{"\ufeff1,2\n", Config{NoHeader: true}, "[0 1] [[1 2]]"},
		{"a,a\n1,2\n", Config{}, "[a a] [[1 2]]"},
		{"a\n1\n2\n", Config{Columns: []string{}}, "[] [[] []]"},
	} {
		table, err := Read[float32](strings.NewReader(c.file), c.c)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		if got := show(t, table); got != c.want {
			t.Errorf("%q: %s, want %s", c.file, got, c.want)
		}
	}
}

func show[F float32 | float64](t *testing.T, x *Table[F]) string {
	t.Helper()
	rows := [][]F{}
	for i := range x.Len() {
		row, err := x.At(i)
		if err != nil || cap(row) != len(x.Names) {
			t.Errorf("row %d: %v, %v", i, row, err)
		}
		rows = append(rows, row)
	}
	return fmt.Sprint(x.Names, " ", rows)
}

func TestReadSaysWhere(t *testing.T) {
	for _, c := range []struct {
		file         string
		c            Config
		line, column int
		want         string
	}{
		{"a,b\n1,2\n3,x\n", Config{}, 3, 2, `(b): "x" is no number of 32 bits: invalid syntax`},
		{"a,b\n1,\n", Config{}, 2, 2, "Config.Empty"},
		{"x,2\n", Config{NoHeader: true}, 1, 1, `(0): "x"`},
		{"a\n1\n\n\n1e39\n", Config{}, 5, 1, "value out of range"},
		{"a,b\n1,2\n3\n", Config{}, 3, 0, csv.ErrFieldCount.Error()},
		{"a,b\n1,\"2\n", Config{}, 2, 0, csv.ErrQuote.Error()},
		{"a\"b\n", Config{}, 1, 0, csv.ErrBareQuote.Error()},
	} {
		_, err := Read[float32](strings.NewReader(c.file), c.c)
		wrong, ok := errors.AsType[*Error](err)
		if !ok || wrong.Line != c.line || wrong.Column != c.column || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want line %d, column %d: %s", c.file, err, c.line, c.column, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		file string
		c    Config
	}{
		"the file is empty":        {"", Config{}},
		`no column "c"`:            {"a,b\n", Config{Columns: []string{"c"}}},
		`columns are named "a"`:    {"a,b,a\n", Config{Columns: []string{"b", "a"}}},
		"65537 columns":            {strings.Repeat(",", MaxColumns) + "\n", Config{}},
		"table: csv: invalid":      {"a\n", Config{Comma: '"'}},
		"table: line 1: " + "bare": {"a\"\n", Config{}},
	} {
		if _, err := Read[float64](strings.NewReader(c.file), c.c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	broken := errors.New("broken disk")
	if _, err := Read[float64](iotest.ErrReader(broken), Config{}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// As float64, more digits and a wider range.
func TestPrecision(t *testing.T) {
	x, err := Read[float64](strings.NewReader("a\n0.1\n1e300\n"), Config{})
	if err != nil || x.Cells[0] != 0.1 || x.Cells[1] != 1e300 {
		t.Errorf("%v, %v", x, err)
	}
	y, err := Read[float32](strings.NewReader("a\n0.1\n"), Config{})
	if err != nil || y.Cells[0] != 0.1 {
		t.Errorf("%v, %v", y, err)
	}
}

func TestSelect(t *testing.T) {
	x, err := Read[float32](strings.NewReader("a,b,c\n1,2,3\n4,5,6\n"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := x.Select("c", "a")
	if err != nil || show(t, y) != "[c a] [[3 1] [6 4]]" {
		t.Errorf("%v, %v", y, err)
	}
	y.Cells[0] = 9
	if x.Cells[2] != 3 {
		t.Error("it is not a copy")
	}
	if _, err := x.Select("d"); err == nil {
		t.Error("there is no column d")
	}
}

// Whatever is read is a number in each place, and reads the same again.
func FuzzRead(f *testing.F) {
	f.Add("a,b\n1,2\n")
	f.Add("a\n\"1\n\"\n")
	f.Add("x\nnan\n-0\n1e400\n")
	f.Fuzz(func(t *testing.T, file string) {
		x, err := Read[float64](strings.NewReader(file), Config{Empty: NaN})
		if err != nil {
			return
		}
		if len(x.Cells) != x.Len()*len(x.Names) || len(x.Names) == 0 {
			t.Fatalf("%d numbers in %d rows of %d", len(x.Cells), x.Len(), len(x.Names))
		}
		var b strings.Builder
		for i := range x.Len() {
			row, _ := x.At(i)
			for k, v := range row {
				if k > 0 {
					b.WriteByte(',')
				}
				fmt.Fprint(&b, v)
			}
			b.WriteByte('\n')
		}
		if x.Len() == 0 {
			return
		}
		again, err := Read[float64](strings.NewReader(b.String()), Config{NoHeader: true})
		if err != nil || again.Len() != x.Len() {
			t.Fatalf("%q: %v", b.String(), err)
		}
		for i, v := range x.Cells {
			if w := again.Cells[i]; v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
				t.Fatalf("%v, then %v", v, w)
			}
		}
	})
}
