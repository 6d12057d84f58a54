package mnist

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// MaxBytes bounds the data of one IDX file: 5.7 times MNIST's largest.
	MaxBytes = 1 << 28

	// deflateRatio is the most that deflate can expand: 258 bytes from two
	// bits. With it a file's size bounds what its header may ask for.
	deflateRatio = 1032

	idxUint8 = 0x08 // the element type in an IDX magic number
)

// An IDX is the contents of an IDX file of unsigned bytes: an array in
// row-major order. Shape has 1 to 255 sizes; their product is len(Data).
type IDX struct {
	Shape []int
	Data  []byte
}

// A DataError is a file or folder that is not what it should be. Its text is
// one line that names the path.
type DataError struct {
	Path string
	Err  error
}

func (e *DataError) Error() string { return "mnist: " + e.Path + ": " + e.Err.Error() }

// Unwrap gives the reason, without the path.
func (e *DataError) Unwrap() error { return e.Err }

// dataError adds the path once, though the os package has said it already.
func dataError(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return &DataError{Path: path, Err: err}
}

// ReadIDX reads a whole IDX file, plain or compressed with gzip: its first
// bytes tell which, not its name. It fails with a *DataError.
func ReadIDX(path string) (*IDX, error) {
	x, err := readIDX(path)
	if err != nil {
		return nil, dataError(path, err)
	}
	return x, nil
}

func readIDX(path string) (*IDX, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would block in Open
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	b := bufio.NewReader(f)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" { // an error comes again below
		return DecodeIDX(b, min(info.Size(), MaxBytes))
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("corrupt: %w", err)
	}
	return DecodeIDX(z, min(info.Size(), MaxBytes/deflateRatio)*deflateRatio)
}

// DecodeIDX reads an IDX array from r, which must end with it. The array may
// have at most limit bytes, and no more than that is allocated, whatever the
// header says.
//
// The format is the one at the foot of the MNIST page: two zero bytes, the
// element type, the number of dimensions, each size as 32 bits big-endian,
// then the elements. Only the element type uint8 is read.
func DecodeIDX(r io.Reader, limit int64) (*IDX, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, cut("its magic number", err)
	}
	if magic[0] != 0 || magic[1] != 0 || magic[3] == 0 {
		return nil, fmt.Errorf("not an IDX file: its magic number is %x", magic)
	}
	if magic[2] != idxUint8 {
		return nil, fmt.Errorf("IDX element type %#02x, want %#02x (unsigned byte)", magic[2], idxUint8)
	}
	sizes := make([]byte, 4*int(magic[3]))
	if _, err := io.ReadFull(r, sizes); err != nil {
		return nil, cut("its header", err)
	}

	x := &IDX{Shape: make([]int, magic[3])}
	n := int64(1)
	for i := range x.Shape {
		d := int64(binary.BigEndian.Uint32(sizes[4*i:]))
		if d != 0 && n > limit/d { // n·d may not even fit 64 bits
			return nil, fmt.Errorf("truncated or corrupt: its header claims more than the %d bytes that can be there", limit)
		}
		n *= d
		x.Shape[i] = int(d)
	}

	x.Data = make([]byte, n)
	if got, err := io.ReadFull(r, x.Data); err != nil {
		return nil, cut(fmt.Sprintf("byte %d of %d", got, n), err)
	}
	// At the end gzip compares its checksum, so it must be read to there.
	switch k, err := io.ReadFull(r, magic[:1]); {
	case k > 0:
		return nil, fmt.Errorf("corrupt: data goes on after the %d bytes of its header", n)
	case err != io.EOF:
		return nil, cut("its checksum", err)
	}
	return x, nil
}

// cut says where reading stopped and why.
func cut(where string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("truncated at %s: %w", where, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("corrupt at %s: %w", where, err)
}
