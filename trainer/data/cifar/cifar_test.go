package cifar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/trainer/data"
)

var _ data.Dataset[Sample] = (*Set)(nil)

// made is n records: image i is of class i mod 10, and all its bytes are i, but the
// first of each channel.
func made(n, from int) []byte {
	var b []byte
	for i := from; i < from+n; i++ {
		p := bytes.Repeat([]byte{byte(i)}, record)
		p[0] = byte(i % Classes)
		p[1], p[1+Side*Side], p[1+2*Side*Side] = 'r', 'g', 'b'
		b = append(b, p...)
	}
	return b
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 5 {
		write(t, dir, fmt.Sprintf("data_batch_%d.bin", i+1), made(3, 3*i))
	}
	write(t, dir, "test_batch.bin", made(2, 100))
	return dir
}

func write(t *testing.T, dir, name string, p []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), p, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	d, err := Load(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Train.Len() != 15 || d.Test.Len() != 2 {
		t.Fatalf("%d and %d images", d.Train.Len(), d.Test.Len())
	}
	for i := range 15 {
		s, err := d.Train.At(i)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Image) != Shape.Len() || cap(s.Image) != Bytes || int(s.Label) != i%Classes || s.Image[1] != byte(i) ||
			s.Image[0] != 'r' || s.Image[Side*Side] != 'g' || s.Image[2*Side*Side] != 'b' {
			t.Errorf("image %d: class %d, %d bytes, %v", i, s.Label, len(s.Image), s.Image[:2])
		}
	}
	if s, _ := d.Test.At(1); s.Label != 1 || s.Image[5] != 101 {
		t.Errorf("class %d, %d", s.Label, s.Image[5])
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	wrong := made(3, 0)
	wrong[2*record] = 10
	for name, c := range map[string]struct {
		file string
		p    []byte // nil: none
		want string
	}{
		"no folder":    {"data_batch_1.bin", nil, "unpack cifar-10-binary.tar.gz"},
		"no test":      {"test_batch.bin", nil, "unpack cifar-10-binary.tar.gz"},
		"a byte short": {"data_batch_3.bin", made(3, 0)[1:], "want records of 3073"},
		"empty":        {"test_batch.bin", []byte{}, "0 bytes"},
		"label":        {"data_batch_5.bin", wrong, "label 2 is 10"},
	} {
		dir := folder(t)
		path := filepath.Join(dir, c.file)
		if c.p != nil {
			write(t, dir, c.file, c.p)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir)
		d, ok := errors.AsType[*DataError](err)
		if !ok || d.Path != path || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if missing := c.p == nil; errors.Is(err, os.ErrNotExist) != missing {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a folder was read as a file")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, size := range []int64{-record, 0, 1, record - 1, (MaxImages + 1) * record, 1 << 62} {
		if _, err := Decode(bytes.NewReader(made(1, 0)), size); err == nil {
			t.Errorf("took %d bytes", size)
		}
	}
	for _, n := range []int{0, 1, record} {
		if _, err := Decode(bytes.NewReader(made(2, 0)[:n]), 2*record); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes that claim to be more: %v", n, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(made(2, 3))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := Decode(bytes.NewReader(p), int64(len(p)))
		if err != nil {
			return
		}
		var again []byte
		for i := range s.Len() {
			x, err := s.At(i)
			if err != nil || x.Label >= Classes {
				t.Fatalf("image %d: class %d, %v", i, x.Label, err)
			}
			again = append(append(again, x.Label), x.Image...)
		}
		if !bytes.Equal(again, p) {
			t.Error("the images are not the file")
		}
	})
}
