package data_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"peermesh/trainer/data"
)

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		text           string
		length, stride int
		want           string
	}{
		{"abcdefg", 3, 0, "abc>bcd def>efg"},
		{"abcdef", 3, 0, "abc>bcd"},
		{"abcd", 3, 9, "abc>bcd"},
		{"abcde", 2, 1, "ab>bc bc>cd cd>de"},
		{"ab", 1, 0, "a>b"},
	} {
		inMemory, err := data.Windows([]byte(c.text), c.length, c.stride)
		if err != nil {
			t.Fatal(err)
		}
		inFile, err := data.WindowsAt(strings.NewReader(c.text), int64(len(c.text)), c.length, c.stride)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []data.Dataset[data.Window]{inMemory, inFile} {
			var got []string
			for _, w := range all(t, set) {
				got = append(got, fmt.Sprintf("%s>%s", w.X, w.Y))
				if cap(w.X) != c.length || cap(w.Y) != c.length {
					t.Errorf("%s can grow over what follows", w.X)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, %d, %d: %v", c.text, c.length, c.stride, got)
			}
		}
	}
}

func TestWindowsRefuse(t *testing.T) {
	for _, c := range [][3]int{{3, 3, 0}, {0, 3, 0}, {9, 0, 0}, {9, -1, 0}, {9, 2, -1}, {9, data.MaxText, 1}} {
		if _, err := data.Windows(make([]byte, c[0]), c[1], c[2]); err == nil {
			t.Errorf("Windows took %v", c)
		}
		if _, err := data.WindowsAt(bytes.NewReader(nil), int64(c[0]), c[1], c[2]); err == nil {
			t.Errorf("WindowsAt took %v", c)
		}
	}
	set, err := data.WindowsAt(strings.NewReader("abcd"), 7, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.At(1); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "byte 4") {
		t.Error(err)
	}
}

func TestReadText(t *testing.T) {
	files := fstest.MapFS{
		"b.go": {Data: []byte("second ")}, "a/x.go": {Data: []byte("first ")}, "a/x.txt": {Data: []byte("not")},
		"c.md": {Data: []byte("third")}, "d.go": {Mode: fs.ModeDir}, "link.go": {Data: []byte("a"), Mode: fs.ModeSymlink},
	}
	for _, c := range []struct {
		limit    int
		patterns []string
		want     string
	}{
		{0, []string{"*.go", "*.md"}, "first second third"},
		{8, []string{"*.go"}, "first se"},
		{6, []string{"*.go"}, "first "},
		{data.MaxText, []string{"c.?d"}, "third"},
	} {
		got, err := data.ReadText(files, c.limit, c.patterns...)
		if err != nil || string(got) != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	for name, f := range map[string]func() ([]byte, error){
		"no match":    func() ([]byte, error) { return data.ReadText(files, 0, "*.c") },
		"no pattern":  func() ([]byte, error) { return data.ReadText(files, 0) },
		"bad pattern": func() ([]byte, error) { return data.ReadText(files, 0, "[") },
		"negative":    func() ([]byte, error) { return data.ReadText(files, -1, "*.go") },
		"no files":    func() ([]byte, error) { return data.ReadText(torn{}, 0, "*") },
	} {
		if got, err := f(); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// torn is a file system that has nothing.
type torn struct{}

func (torn) Open(name string) (fs.File, error) { return nil, fs.ErrNotExist }
