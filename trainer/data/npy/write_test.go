package npy_test

import (
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

	"peermesh/ops/tensor"
	"peermesh/trainer/data/npy"
)

// blind is memory that lends no bytes, as a GPU's does not.
type blind struct{ tensor.Memory }

func TestWriteOfOtherMemory(t *testing.T) {
	long := make([]byte, 1<<18+24)
	for i := range long {
		long[i] = byte(i % 251)
	}
	var seen, unseen bytes.Buffer
	if err := npy.Write(&seen, tensor.In(tensor.Host(long), tensor.Int64, len(long)/8)); err != nil {
		t.Fatal(err)
	}
	if err := npy.Write(&unseen, tensor.In(blind{tensor.Host(long)}, tensor.Int64, len(long)/8)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(seen.Bytes(), unseen.Bytes()) {
		t.Error("they differ")
	}
	if err := npy.Write(io.Discard, tensor.In(blind{tensor.Host(nil)}, tensor.Int64, 1)); err == nil {
		t.Error("memory that is not there was written")
	}
}

// full fails at the n-th byte.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	x := tensor.Of([]float32{1})
	for _, n := range []int{0, 128} {
		if err := npy.Write(&full{n}, x); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: %v", n, err)
		}
		if err := npy.WriteZip(&full{n}, []npy.Named{{"x", x}}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	dir := t.TempDir()
	for _, x := range []tensor.Tensor{{}, tensor.New(tensor.BFloat16, 1), tensor.New(tensor.Int8, slices.Repeat([]int{1}, npy.MaxDims+1)...)} {
		if err := npy.Save(filepath.Join(dir, "x.npy"), x); err == nil {
			t.Errorf("%v was saved", x)
		}
		if err := npy.SaveZip(filepath.Join(dir, "x.npz"), []npy.Named{{"x", x}}); err == nil {
			t.Errorf("%v was saved", x)
		}
	}
	for _, names := range [][]string{{""}, {"a", "a"}} {
		var arrays []npy.Named
		for _, n := range names {
			arrays = append(arrays, npy.Named{Name: n, Value: x})
		}
		if err := npy.WriteZip(io.Discard, arrays); err == nil {
			t.Errorf("%q were written", names)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestZipRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.npz")
	arrays := []npy.Named{{"loss", tensor.Of([]float64{3, 2, 1})}, {"deep/name", tensor.Of([]bool{true})}}
	if err := npy.SaveZip(path, arrays); err != nil {
		t.Fatal(err)
	}
	z, err := npy.OpenZip(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if !slices.Equal(z.Names(), []string{"loss", "deep/name"}) {
		t.Errorf("%v", z.Names())
	}
	a, err := z.Array("loss")
	if err != nil || text(t, a) != "float64[3] [3 2 1]" {
		t.Error(err)
	}
	if _, err := z.Array("none"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "loss") {
		t.Error(err)
	}
}

// A compressed member whose directory lies about its size costs no memory.
func TestArchivesThatLie(t *testing.T) {
	packed, err := os.ReadFile("testdata/packed.npz")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile("testdata/stored.npz")
	if err != nil {
		t.Fatal(err)
	}
	const sizes = 20 // of a directory entry, from its signature: compressed, then not
	lie := func(archive []byte, at int, size uint32) []byte {
		p := slices.Clone(archive)
		entry := bytes.Index(p, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(p[entry+sizes+at:], size)
		return p
	}
	for name, p := range map[string][]byte{
		"a bomb": lie(packed, 4, 1<<31), "more": lie(packed, 4, 200), "fewer": lie(packed, 4, 100), "none": lie(packed, 4, 0),
		"stored, more": lie(stored, 4, 1000), "stored, fewer": lie(stored, 0, 1),
	} {
		z, err := npy.NewZip(bytes.NewReader(p), int64(len(p)))
		if err != nil {
			continue // found out already
		}
		if _, err := z.Array(z.Names()[0]); !errors.Is(err, npy.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever is accepted can be read, and written again to the same array.
func FuzzNew(f *testing.F) {
	for v := 1; v <= 3; v++ {
		p, err := os.ReadFile(fmt.Sprintf("testdata/v%d.npy", v))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p)
	}
	f.Add(file(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12))
	f.Add(file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1))
	f.Fuzz(func(t *testing.T, p []byte) {
		a, err := open(p)
		if err != nil {
			return
		}
		x, err := a.Read()
		if err != nil {
			t.Fatal(err)
		}
		if x.Bytes() > int64(len(p)) {
			t.Fatalf("%v of %d bytes", x, len(p))
		}
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			t.Fatal(err)
		}
		again, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, again), text(t, a); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

// No archive makes reading it crash, or take more memory than it may.
func FuzzNewZip(f *testing.F) {
	for _, path := range []string{"testdata/refused.npz", "testdata/packed.npz"} {
		p, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		z, err := npy.NewZip(bytes.NewReader(p), int64(len(p)))
		if err != nil {
			return
		}
		for _, name := range z.Names() {
			a, err := z.Array(name)
			if err != nil {
				continue
			}
			if _, err := a.Read(); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
	})
}

// Arrays of every type and of many shapes, written and read, are what they were.
func TestRoundTrip(t *testing.T) {
	for dtype := tensor.Float32; dtype <= tensor.Bool; dtype++ {
		if dtype == tensor.BFloat16 {
			continue // which NumPy does not have
		}
		for _, shape := range [][]int{{}, {1}, {7}, {0}, {2, 3}, {3, 0, 2}, {2, 1, 3, 2}} {
			x := tensor.New(dtype, shape...)
			p, _ := x.View(0, x.Bytes())
			for i := range p {
				p[i] = byte(i+1) & 1
			}
			var b bytes.Buffer
			if err := npy.Write(&b, x); err != nil {
				t.Fatal(err)
			}
			if (b.Len()-len(p))%64 != 0 {
				t.Errorf("%v: the elements begin at byte %d", x, b.Len()-len(p))
			}
			a, err := open(b.Bytes())
			if err != nil {
				t.Fatalf("%v: %v", x, err)
			}
			y, err := a.Read()
			if err != nil {
				t.Fatalf("%v: %v", x, err)
			}
			if q, _ := y.View(0, y.Bytes()); x.String() != y.String() || !bytes.Equal(p, q) {
				t.Errorf("%v became %v, or its elements differ", x, y)
			}
		}
	}
}
