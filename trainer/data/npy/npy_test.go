package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"peermesh/trainer/data"
	"peermesh/trainer/data/npy"
)

var _ data.Dataset[[]float32] = (*npy.RowSet[float32])(nil)

// memberBytes are the files of an archive, without their suffix.
func memberBytes(t *testing.T, path string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	m := make(map[string][]byte)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		p, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(f.Name, ".npy")] = p
	}
	return m
}

// file puts a header of a version before some bytes.
func file(version byte, header string, n int) []byte {
	p := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		p = binary.LittleEndian.AppendUint16(p, uint16(len(header)))
	} else {
		p = binary.LittleEndian.AppendUint32(p, uint32(len(header)))
	}
	return append(append(p, header...), make([]byte, n)...)
}

func open(p []byte) (*npy.Array, error) { return npy.New(bytes.NewReader(p), int64(len(p))) }

func TestHeadersThatAreFine(t *testing.T) {
	for header, want := range map[string]string{
		`{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }`:          "float32[1] [0]",
		`{"shape":(1,),"fortran_order":True,"descr":"|b1"}`:                  "bool[1] [false]",
		"{ 'descr' :'=i2',\n'shape': ( 2 , 1 ) ,'fortran_order': False }\n":  "int16[2 1] [0 0]",
		`{'descr': '?', 'fortran_order': False, 'shape': (), }`:              "bool[] [false]",
		`{'descr': '<u8', 'fortran_order': False, 'shape': (2L, 0L), }`:      "uint64[2 0] []",
		`{'descr': '|u1', 'fortran_order': True, 'shape': (0, 99999999999)}`: "uint8[0 99999999999] []",
	} {
		n := 0
		for size, kinds := range map[int]string{1: "b1?", 4: "f4i2"} {
			for _, kind := range []string{"b1", "?", "f4", "i2"} {
				if strings.Contains(kinds, kind) && strings.Contains(header, kind) {
					n = size
				}
			}
		}
		for version := byte(1); version <= 3; version++ {
			a, err := open(file(version, header, n))
			if err != nil {
				t.Errorf("%s: %v", header, err)
			} else if got := text(t, a); got != want {
				t.Errorf("%s: %s, want %s", header, got, want)
			}
		}
	}
}

func TestHeadersThatLie(t *testing.T) {
	good := func(descr, shape string) string {
		return fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': %s}", descr, shape)
	}
	for _, header := range []string{
		"", "{", "}", "{}", "[]", "{'descr': '<f4'}", good("'<f4'", "(1,)") + "x", good("'<f4'", "(1,)")[1:],
		strings.ToLower(good("'<f4'", "(1,)")), good("<f4", "(1,)"), good("'<f4", "(1,)"), good(`'<f4"`, "(1,)"), good(`'<\x664'`, "(1,)"),
		good("''", "(1,)"), good("'f4'", "(1,)"), good("'!f4'", "(1,)"), good("'|f4'", "(1,)"), good("'<f3'", "(1,)"), good("'<c8'", "(1,)"),
		good("[('a', '<f4')]", "(1,)"), good("'<f4'", "(1)"), good("'<f4'", "1"), good("'<f4'", "(-1,)"), good("'<f4'", "(+1,)"),
		good("'<f4'", "(1,,)"), good("'<f4'", "(,)"), good("'<f4'", "(1 1)"), good("'<f4'", "(1.0,)"), good("'<f4'", "(18446744073709551616,)"),
		good("'<f4'", "(4294967296, 4294967296)"), good("'<f4'", "("+strings.Repeat("1,", 65)+")"), good("'<f4'", "(2,)"), good("'<f4'", "(0,)"),
		"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': '1'}",
		"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
	} {
		if a, err := open(file(1, header, 4)); !errors.Is(err, npy.ErrFormat) || !strings.HasPrefix(err.Error(), "npy: ") {
			t.Errorf("%s: %v, %v", header, a, err)
		}
	}
}

func TestFilesThatLie(t *testing.T) {
	whole := file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4)
	for n := range whole {
		if _, err := open(whole[:n]); !errors.Is(err, npy.ErrFormat) {
			t.Errorf("cut to %d: %v", n, err)
		}
		if _, err := npy.New(bytes.NewReader(whole[:n]), int64(len(whole))); n < len(whole)-4 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes that claim to be %d: %v", n, len(whole), err)
		}
	}
	for name, p := range map[string][]byte{
		"version 4": file(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4),
		"long":      append(slices.Clone(whole), 0),
		"huge":      binary.LittleEndian.AppendUint32([]byte("\x93NUMPY\x02\x00"), 1<<31),
		"bound":     file(2, strings.Repeat(" ", npy.MaxHeader+1), 0),
		"other":     []byte("PK\x03\x04 and what follows"),
	} {
		if _, err := open(p); !errors.Is(err, npy.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	short, err := npy.New(bytes.NewReader(whole[:len(whole)-1]), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := short.Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestRows(t *testing.T) {
	z, err := npy.OpenZip("testdata/stored.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	array := func(name string) *npy.Array {
		a, err := z.Array(name)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	rows := func(s interface {
		Len() int
		At(int) ([]int16, error)
	}, err error) string {
		if err != nil {
			return err.Error()
		}
		got := [][]int16{}
		for i := range s.Len() {
			x, err := s.At(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, x)
		}
		return fmt.Sprint(got)
	}
	for name, want := range map[string]string{
		"i2": "[[-2 -1 0] [1 2 3]]", "big_i2": "[[-2 -1 0] [1 2 3]]",
		"fortran": "[[-2 -1 0 1 2 3 4 5 6 7 8 9] [10 11 12 13 14 15 16 17 18 19 20 21]]",
		"i4":      "npy: rows of int16: the array is int32[2 3]",
	} {
		if got := rows(npy.Rows[int16](array(name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if s, err := npy.Rows[uint8](array("empty")); err != nil || s.Len() != 0 {
		t.Errorf("%v", err)
	}
	if v, err := npy.Rows[float32](array("vector")); err != nil || v.Len() != 5 {
		t.Errorf("%v", err)
	} else if x, err := v.At(4); err != nil || !slices.Equal(x, []float32{-1}) {
		t.Errorf("%v, %v", x, err)
	}
	if _, err := npy.Rows[float32](array("scalar")); err == nil {
		t.Error("a scalar has rows")
	}
	gone := file(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}", 12)
	for _, order := range []string{"False", "True "} {
		p := bytes.Replace(gone, []byte("False"), []byte(order), 1)
		a, err := npy.New(bytes.NewReader(p[:len(p)-1]), int64(len(p)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := npy.Rows[int16](a)
		if err == nil {
			_, err = s.At(1)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", order, err)
		}
	}
}

func TestBoolsAreMadeBools(t *testing.T) {
	p := file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", 2)
	p[len(p)-1] = 7
	a, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, a); got != "bool[2] [false true]" {
		t.Error(got)
	}
}

func TestOpenNamesThePath(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("not an array"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{bad: npy.ErrFormat, filepath.Join(dir, "none"): os.ErrNotExist, dir: nil} {
		_, one := npy.Open(path)
		_, two := npy.OpenZip(path)
		for _, err := range []error{one, two} {
			if err == nil || want != nil && !errors.Is(err, want) || strings.Count(err.Error(), path) != 1 {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
