package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"peermesh/ops/tensor"
)

// ErrFormat is wrapped by the errors of what is not a safetensors file, or not a
// whole one.
var ErrFormat = errors.New("malformed")

// An Info is what a file's header says of one tensor.
type Info struct {
	Name  string
	DType tensor.DType
	Shape []int // the outermost dimension first; empty for a scalar

	// Its bytes, "relative to the beginning of the byte buffer (i.e. not an absolute position
	// in the file)", and the one past the last.
	begin, end int64
}

// Bytes is the size of the elements.
func (i Info) Bytes() int64 { return i.end - i.begin }

func (i Info) String() string { return fmt.Sprintf("%q %v%v", i.Name, i.DType, i.Shape) }

// A File is the header of a file and the means to read the rest. Its methods may
// be called by several goroutines, if the ReaderAt allows it, as files do.
type File struct {
	r        io.ReaderAt
	data     int64             // where the elements begin
	tensors  []Info            // as they lie
	index    map[string]int    // of tensors, by name
	metadata map[string]string // nil without __metadata__
	closer   io.Closer         // of the file that Open opened; nil after New
}

// Open reads the header of a file. The caller closes the File. Its errors name the
// path; those of a malformed file wrap ErrFormat.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	file, err := openFile(f)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", path, errors.Join(err, f.Close()))
	}
	file.closer = f
	return file, nil
}

// openFile is parse of a file whose size can be trusted: of a pipe or a device it says
// nothing, and the format's first check is that header and elements are just that long.
func openFile(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return parse(f, info.Size())
}

// New is Open of size bytes that r has. The File is usable as long as r is.
func New(r io.ReaderAt, size int64) (*File, error) {
	f, err := parse(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

// Close closes the file of Open. After New it does nothing.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors are all tensors, in the order in which they lie in the file. The caller
// owns the slice.
func (f *File) Tensors() []Info {
	all := slices.Clone(f.tensors)
	for i := range all {
		all[i].Shape = slices.Clone(all[i].Shape)
	}
	return all
}

// Metadata is the header's __metadata__, empty if there is none. The caller owns
// the map.
func (f *File) Metadata() map[string]string {
	m := maps.Clone(f.metadata)
	if m == nil {
		m = make(map[string]string)
	}
	return m
}

// Lookup is what the header says of the tensor of that name, if there is one.
func (f *File) Lookup(name string) (Info, bool) {
	at, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	i := f.tensors[at]
	i.Shape = slices.Clone(i.Shape)
	return i, true
}

// Read is the tensor of that name, in new memory of the host. No more is allocated than the
// file has bytes of it: the header has been compared with the file's size.
func (f *File) Read(name string) (tensor.Tensor, error) {
	i, ok := f.Lookup(name)
	if !ok {
		return tensor.Tensor{}, fmt.Errorf("safetensors: the file has no tensor %q", name)
	}
	t := tensor.New(i.DType, i.Shape...)
	if err := f.fill(t, i); err != nil {
		return tensor.Tensor{}, err
	}
	return t, nil
}

// ReadInto fills dst with the elements of the tensor of that name, converted to
// dst's element type. The shapes are equal, the memory is anybody's. After an
// error dst's elements are unspecified.
func (f *File) ReadInto(dst tensor.Tensor, name string) error {
	i, ok := f.Lookup(name)
	if !ok {
		return fmt.Errorf("safetensors: the file has no tensor %q", name)
	}
	if err := fits(dst, i); err != nil {
		return fmt.Errorf("safetensors: %q: %w", name, err)
	}
	return f.fill(dst, i)
}

// fits says why the tensor that i describes cannot be read into dst. Shapes are compared as a
// whole, never made to fit: PyTorch's load_state_dict takes {1} for a scalar, to which models
// older than 0.4 are the reason, and none of those is a safetensors file.
func fits(dst tensor.Tensor, i Info) error {
	if !slices.Equal(dst.Shape(), i.Shape) {
		return fmt.Errorf("its shape is %v in the file, want %v", i.Shape, dst.Shape())
	}
	return convertible(dst.DType(), i.DType)
}
