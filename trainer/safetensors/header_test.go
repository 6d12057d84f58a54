package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file puts a header before data.
func file(header string, data int) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(p, header...), make([]byte, data)...)
}

func open(p []byte) (*File, error) { return New(bytes.NewReader(p), int64(len(p))) }

func TestHeadersThatAreFine(t *testing.T) {
	for header, data := range map[string]int{
		`{}`:                  0,
		`{}   `:               0,
		`{"__metadata__":{}}`: 0,
		"{ \"a\" :\n{ \"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}":                                         1,
		`{"a":{"dtype":"F32","shape":[0,9000000000000],"data_offsets":[0,0]}}`:                                        0,
		`{"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4],"more":{"x":[1]}}}`:                                     4,
		`{"b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`: 5,
		`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`:   1,
		`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`:                                                        1,
	} {
		if _, err := open(file(header, data)); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestHeadersThatLie(t *testing.T) {
	one := func(member string) string { return `{"a":{` + member + `}}` }
	for _, c := range []struct {
		header string
		data   int
		want   string
	}{
		{``, 0, "does not begin with {"},
		{` {}`, 0, "does not begin with {"},
		{`[]`, 0, "does not begin with {"},
		{`{`, 0, "header: "},
		{`{}{}`, 0, "goes on after"},
		{`{} x`, 0, "goes on after"},
		{"{\"\xff\":1}", 0, "not UTF-8"},
		{`{"a":1}`, 0, "no object"},
		{`{"a":null}`, 0, "no object"},
		{`{"a"}`, 0, "header: "},
		{`{"__metadata__":{"a":1}}`, 0, `metadata "a" is not a string`},
		{`{"__metadata__":{"a":null}}`, 0, `metadata "a" is not a string`},
		{`{"__metadata__":{"a":"","a":""}}`, 0, `"a" comes twice`},
		{`{"__metadata__":[]}`, 0, "no object"},
		{one(``), 0, "0 offsets"},
		{one(`"dtype":"U8","shape":[1]`), 1, "0 offsets"},
		{one(`"dtype":"U8","data_offsets":[0,1]`), 1, "0 dimensions"},
		{one(`"dtype":"U8","shape":null,"data_offsets":[0,1]`), 1, "0 dimensions"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[0,1,1]`), 1, "3 offsets"},
		{one(`"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]`), 1, `"shape" comes twice`},
		{one(`"DTYPE":"U8","shape":[1],"data_offsets":[0,1]`), 1, `elements of type ""`},
		{one(`"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]`), 1, `elements of type "F8_E4M3"`},
		{one(`"dtype":"U8","shape":[1.5],"data_offsets":[0,1]`), 1, "shape"},
		{one(`"dtype":"U8","shape":[-1],"data_offsets":[0,1]`), 1, "does not take"},
		{one(`"dtype":"U8","shape":[2],"data_offsets":[0,1]`), 1, "does not take"},
		{one(`"dtype":"F32","shape":[1],"data_offsets":[0,1]`), 1, "does not take"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[1,0]`), 1, "does not take"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[-1,0]`), 1, "does not take"},
		{one(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`), 0, "does not take"},
		{one(`"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]`), 0, "shape"},
		{one(`"dtype":"U8","shape":[` + strings.Repeat("1,", MaxDims) + `1],"data_offsets":[0,1]`), 1, "33 dimensions"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[1,2]`), 2, "begins at byte 1"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[0,1]`), 2, "end at byte 1 of 2"},
		{one(`"dtype":"U8","shape":[1],"data_offsets":[0,1]`), 0, "end at byte 1 of 0"},
		{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3, "begins at byte 1"},
		{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3, "begins at byte 2"},
		{`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, `"a" comes twice`},
		{`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, `"a" comes twice`},
	} {
		_, err := open(file(c.header, c.data))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "safetensors: ") {
			t.Errorf("%s + %d: %v, want %q", c.header, c.data, err, c.want)
		}
	}
}

// A length is compared with the file before anything is allocated.
func TestLengthsThatLie(t *testing.T) {
	for name, p := range map[string][]byte{
		"nothing": nil,
		"short":   make([]byte, 7),
		"long":    file(`{}`, 0)[:9],
		"bound":   binary.LittleEndian.AppendUint64(nil, MaxHeader+1),
		"huge":    binary.LittleEndian.AppendUint64(nil, 1<<63),
	} {
		if _, err := open(p); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Here the reader is shorter than it said.
	if _, err := New(bytes.NewReader(file(`{}`, 0)[:9]), 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestOpenNamesThePath(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{bad: ErrFormat, filepath.Join(dir, "none"): os.ErrNotExist, dir: nil} {
		_, err := Open(path)
		if err == nil || want != nil && !errors.Is(err, want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Whatever is accepted lies within the file, byte next to byte, and can be read and
// written again to the same tensors.
func FuzzNew(f *testing.F) {
	golden, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(file(`{"a":{"dtype":"F32","shape":[1,0],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"__metadata__":{"b":"c"}}`, 2))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<62))
	f.Fuzz(func(t *testing.T, p []byte) {
		x, err := open(p)
		if err != nil {
			return
		}
		var total int64
		for _, i := range x.Tensors() {
			total += i.Bytes()
		}
		if x.data+total != int64(len(p)) {
			t.Fatalf("%d bytes of header and %d of tensors in %d", x.data, total, len(p))
		}
		params, err := x.Params()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(&b, params, Options{Metadata: x.Metadata()}); err != nil {
			t.Fatal(err)
		}
		again, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(again.Metadata(), len(again.Tensors())), fmt.Sprint(x.Metadata(), len(params)); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		for _, p := range params {
			y, err := again.Read(p.Name)
			if err != nil || y.String() != p.Value.String() {
				t.Fatalf("%q: %v, %v", p.Name, y, err)
			}
		}
	})
}
