package mnist

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDecodeIDX(t *testing.T) {
	for _, shape := range [][]int{{6}, {2, 3}, {1, 2, 3}, {1, 1, 1, 6}, {0}, {5, 0}, {6, 1}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := []byte{9, 8, 7, 6, 5, 4}[:n]
		x, err := DecodeIDX(bytes.NewReader(encode(shape, data)), 6)
		if err != nil {
			t.Errorf("%v: %v", shape, err)
		} else if !slices.Equal(x.Shape, shape) || !bytes.Equal(x.Data, data) {
			t.Errorf("%v: got %v, %v", shape, x.Shape, x.Data)
		}
	}
}

func TestDecodeIDXRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"nothing":            {"", "truncated at its magic number"},
		"half a magic":       {"\x00\x00", "truncated at its magic number"},
		"another format":     {"\x89PNG", "magic number is 89504e47"},
		"float elements":     {"\x00\x00\x0d\x01\x00\x00\x00\x00", "element type 0x0d"},
		"no dimensions":      {"\x00\x00\x08\x00*", "magic number is 00000800"},
		"half a size":        {"\x00\x00\x08\x01\x00\x00", "truncated at its header"},
		"a missing size":     {"\x00\x00\x08\x02\x00\x00\x00\x01", "truncated at its header"},
		"a byte short":       {"\x00\x00\x08\x01\x00\x00\x00\x03ab", "truncated at byte 2 of 3"},
		"a byte long":        {"\x00\x00\x08\x01\x00\x00\x00\x03abcd", "goes on after the 3 bytes"},
		"over the limit":     {"\x00\x00\x08\x01\x00\x00\x00\x65", "more than the 100 bytes"},
		"over it in product": {"\x00\x00\x08\x02\x00\x00\x00\x0b\x00\x00\x00\x0a", "more than the 100 bytes"},
		"2¹²⁸":               {"\x00\x00\x08\x04" + strings.Repeat("\xff", 16), "more than the 100 bytes"},
		"2⁶⁴, which wraps":   {"\x00\x00\x08\x04" + strings.Repeat("\x00\x01\x00\x00", 4), "more than the 100 bytes"},
	} {
		_, err := DecodeIDX(strings.NewReader(c.file), 100)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestDecodeIDXPassesReadErrorsOn(t *testing.T) {
	broken := errors.New("broken disc")
	whole := encode([]int{3}, []byte("abc"))
	for n := range len(whole) + 1 {
		r := io.MultiReader(bytes.NewReader(whole[:n]), errReader{broken})
		if _, err := DecodeIDX(r, 100); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v, want %v", n, err, broken)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// The largest limit that a file can lead to must not overflow.
func TestDecodeIDXAtTheLargestLimit(t *testing.T) {
	file := "\x00\x00\x08\x04" + strings.Repeat("\xff", 16)
	if _, err := DecodeIDX(strings.NewReader(file), math.MaxInt64); err == nil {
		t.Error("2¹²⁸ bytes were believed")
	}
}

func TestReadIDXPlainOrPacked(t *testing.T) {
	plain := encode([]int{2, 3}, []byte("abcdef"))
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"plain":      plain,
		"packed.gz":  pack(plain),
		"plain.gz":   plain, // what some downloaders leave behind
		"packed":     pack(plain),
		"halves.gz":  slices.Concat(pack(plain[:5]), pack(plain[5:])),
		"nothing.gz": pack(encode([]int{0, 3}, nil)),
	} {
		path := filepath.Join(dir, name)
		folder(t, dir, map[string][]byte{name: b})
		if x, err := ReadIDX(path); err != nil {
			t.Error(err)
		} else if x.Shape[1] != 3 || string(x.Data) != "abcdef"[:3*x.Shape[0]] {
			t.Errorf("%s: %v, %q", name, x.Shape, x.Data)
		}
	}
}

// However a file is cut or damaged, the error is one line that names it.
func TestReadIDXOfDamagedFiles(t *testing.T) {
	plain := encode([]int{2, 3}, []byte("abcdef"))
	packed := pack(plain)
	damaged := map[string][]byte{
		"trailing": append(slices.Clone(plain), 0),
		"garbage":  append(slices.Clone(packed), "more"...),
		"checksum": slices.Clone(packed),
		"bomb":     pack(encode([]int{1 << 20, 1 << 10}, make([]byte, 1<<20))),
		"claims":   encode([]int{1 << 20}, []byte("few")),
	}
	damaged["checksum"][len(packed)-5] ^= 1
	for n := range plain {
		damaged["cut plain"+strings.Repeat("'", n)] = plain[:n]
	}
	for n := range packed {
		damaged["cut packed"+strings.Repeat("'", n)] = packed[:n]
	}
	dir := t.TempDir()
	for name, b := range damaged {
		path := filepath.Join(dir, "file")
		folder(t, dir, map[string][]byte{"file": b})
		checkDataError(t, name, second(ReadIDX(path)), path, "")
	}
}

func TestReadIDXOfNoFile(t *testing.T) {
	dir := t.TempDir()
	checkDataError(t, "a folder", second(ReadIDX(dir)), dir, "not a regular file")
	none := filepath.Join(dir, "none")
	err := second(ReadIDX(none))
	checkDataError(t, "nothing", err, none, "no such file")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not ErrNotExist", err)
	}
}

func second[T any](_ T, err error) error { return err }

// checkDataError wants one line, prefixed, that names the path once.
func checkDataError(t *testing.T, name string, err error, path, want string) {
	t.Helper()
	d, ok := errors.AsType[*DataError](err)
	if !ok {
		t.Errorf("%s: %v is no DataError", name, err)
		return
	}
	text := err.Error()
	if d.Path != path || !strings.HasPrefix(text, "mnist: "+path+": ") || strings.Count(text, path) != 1 ||
		strings.Contains(text, "\n") || !strings.Contains(text, want) {
		t.Errorf("%s: %q, want one line about %s with %q", name, text, path, want)
	}
}

// Whatever is decoded is the file: encoded again, it is the same.
func FuzzDecodeIDX(f *testing.F) {
	f.Add(encode([]int{2, 3}, []byte("abcdef")))
	f.Add(encode([]int{1, 28, 28}, make([]byte, Pixels)))
	f.Add([]byte("\x00\x00\x08\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, file []byte) {
		const limit = 1 << 12
		x, err := DecodeIDX(bytes.NewReader(file), limit)
		if err != nil {
			return
		}
		if len(x.Data) > limit {
			t.Errorf("%d bytes are over the limit", len(x.Data))
		}
		if again := encode(x.Shape, x.Data); !bytes.Equal(again, file) {
			t.Errorf("decoded to %v, %x; the file was %x", x.Shape, x.Data, file)
		}
	})
}
