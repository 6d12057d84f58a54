package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/atomicfile"
)

const (
	// MaxUnpacked bounds a compressed member of an archive, unpacked, in bytes.
	MaxUnpacked = 1 << 32

	// deflateRatio is the most that deflate can expand: 258 bytes from two bits. So a
	// member's size bounds what it may claim to become.
	deflateRatio = 1032

	suffix = ".npy"
)

// A Zip is an NPZ archive.
type Zip struct {
	r      io.ReaderAt
	zip    *zip.Reader
	closer io.Closer
}

// OpenZip reads the directory of an archive. The caller closes the Zip, after its
// arrays.
func OpenZip(path string) (*Zip, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	z, err := NewZip(f, size)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", errors.Join(err, f.Close()), path)
	}
	z.closer = f
	return z, nil
}

// NewZip is OpenZip of size bytes that r has.
func NewZip(r io.ReaderAt, size int64) (*Zip, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("npy: %w: %w", ErrFormat, err)
	}
	return &Zip{r: r, zip: z}, nil
}

// Close closes the file of OpenZip.
func (z *Zip) Close() error {
	if z.closer == nil {
		return nil
	}
	return z.closer.Close()
}

// Names are those of the arrays, in the archive's order.
func (z *Zip) Names() []string {
	var names []string
	for _, f := range z.zip.File {
		if name, ok := strings.CutSuffix(f.Name, suffix); ok {
			names = append(names, name)
		}
	}
	return names
}

// Array is the array of that name. Closing it does nothing.
func (z *Zip) Array(name string) (*Array, error) {
	for _, f := range z.zip.File {
		if f.Name == name+suffix {
			a, err := z.array(f)
			if err != nil {
				return nil, fmt.Errorf("npy: %s: %w", f.Name, err)
			}
			return a, nil
		}
	}
	return nil, fmt.Errorf("npy: the archive has no array %q, but %.10q: %w", name, z.Names(), os.ErrNotExist)
}

// array opens one member: in place where it is stored, else unpacked.
func (z *Zip) array(f *zip.File) (*Array, error) {
	size := f.UncompressedSize64
	if f.Method == zip.Store {
		off, err := f.DataOffset()
		if err != nil {
			return nil, malformed("%v", err)
		}
		if size != f.CompressedSize64 || size > 1<<62 {
			return nil, malformed("%d bytes stored in %d", size, f.CompressedSize64)
		}
		section := io.NewSectionReader(z.r, off, int64(size))
		h, err := readHeader(section, int64(size))
		return &Array{header: h, r: section}, err
	}
	if size > MaxUnpacked || f.CompressedSize64 <= MaxUnpacked && size > f.CompressedSize64*deflateRatio {
		return nil, malformed("%d bytes, unpacked from %d: at most %d", size, f.CompressedSize64, int64(MaxUnpacked))
	}
	p, err := unpack(f, size)
	if err != nil {
		return nil, err
	}
	r := bytes.NewReader(p)
	h, err := readHeader(r, int64(len(p)))
	return &Array{header: h, r: r}, err
}

// unpack reads a member to its end, where its checksum is compared.
func unpack(f *zip.File, size uint64) (_ []byte, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, malformed("%v", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var b bytes.Buffer // grows with what comes, not with what is claimed
	n, err := io.Copy(&b, io.LimitReader(r, int64(size)+1))
	if err != nil || uint64(n) != size {
		return nil, malformed("%d bytes unpacked, want %d: %v", n, size, err)
	}
	return b.Bytes(), nil
}

// A Named is an array of an archive that is to be written.
type Named struct {
	Name  string
	Value tensor.Tensor
}

// WriteZip writes arrays as an NPZ archive, stored as they are. The same arrays give
// the same bytes. Names differ.
func WriteZip(w io.Writer, arrays []Named) error {
	z := zip.NewWriter(w)
	seen := make(map[string]bool)
	for _, a := range arrays {
		if seen[a.Name] || a.Name == "" {
			return fmt.Errorf("npy: the name %q is empty or taken", a.Name)
		}
		seen[a.Name] = true
		member, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + suffix, Method: zip.Store})
		if err != nil {
			return fmt.Errorf("npy: %q: %w", a.Name, err)
		}
		if err := Write(member, a.Value); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	return nil
}

// SaveZip is WriteZip to a file, which it replaces as a whole or, on an error, not
// at all.
func SaveZip(path string, arrays []Named) error {
	return atomicfile.Write(path, func(w io.Writer) error { return WriteZip(w, arrays) })
}
