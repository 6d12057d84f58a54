package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/tensorfile"
)

const (
	// MaxHeader bounds a header, in bytes: the library's MAX_HEADER_SIZE, which README.md
	// gives as the reason why a parser need fear no header.
	MaxHeader = 100_000_000
	// MaxTensors bounds the number of tensors of a file. The format has no such bound.
	MaxTensors = 1 << 20
	// MaxDims bounds the dimensions of a tensor. Nor has it this one: numpy 1 ends at 32.
	MaxDims = 32

	prefix       = 8 // bytes of the header's length
	metadataName = "__metadata__"
)

// kinds are the format's element types that package tensor has, in the order in
// which the format's library lays them out, the last first.
var kinds = []struct {
	name  string
	dtype tensor.DType
}{
	{"BOOL", tensor.Bool}, {"U8", tensor.Uint8}, {"I8", tensor.Int8},
	{"I16", tensor.Int16}, {"U16", tensor.Uint16}, {"F16", tensor.Float16}, {"BF16", tensor.BFloat16},
	{"I32", tensor.Int32}, {"U32", tensor.Uint32}, {"F32", tensor.Float32},
	{"F64", tensor.Float64}, {"I64", tensor.Int64}, {"U64", tensor.Uint64},
}

func malformed(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, a...)...)
}

// parse reads a header and checks that it describes a file of size bytes. It
// allocates in proportion to the header, which is at most the file.
func parse(r io.ReaderAt, size int64) (*File, error) {
	var head [prefix]byte
	if size < prefix {
		return nil, malformed("%d bytes are no file: the length of its header has %d", size, prefix)
	}
	if err := tensorfile.ReadFull(r, head[:], 0); err != nil {
		return nil, err
	}
	// "8 bytes: N, an unsigned little-endian 64-bit integer": compared while it is unsigned,
	// so that no length becomes a negative one.
	n := binary.LittleEndian.Uint64(head[:])
	if n > MaxHeader {
		return nil, malformed("a header of %d bytes: at most %d", n, MaxHeader)
	}
	if int64(n) > size-prefix {
		return nil, malformed("a header of %d bytes in a file of %d", n, size)
	}
	text := make([]byte, n)
	if err := tensorfile.ReadFull(r, text, prefix); err != nil {
		return nil, err
	}
	f := &File{r: r, data: prefix + int64(n), index: make(map[string]int)}
	if err := f.decode(text); err != nil {
		return nil, err
	}
	return f, f.arrange(size - f.data)
}

// decode takes the header apart.
func (f *File) decode(text []byte) error {
	// JSON would make one replacement of all bytes that are no text, and so one name of two.
	if !utf8.Valid(text) {
		return malformed("the header is not UTF-8")
	}
	// "The header data MUST begin with a { character (0x7B)": no space before it, and no
	// byte-order mark.
	if len(text) == 0 || text[0] != '{' {
		return malformed("the header does not begin with {")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := object(d, func(name string) error {
		if name == metadataName {
			return f.decodeMetadata(d)
		}
		if len(f.tensors) == MaxTensors {
			return malformed("more than %d tensors", MaxTensors)
		}
		i, err := decodeInfo(d, name)
		f.tensors = append(f.tensors, i)
		return err
	})
	if err != nil {
		return err
	}
	// "The header data MAY be trailing padded with whitespace (0x20)", which the decoder skips.
	if _, err := d.Token(); err != io.EOF {
		return malformed("the header goes on after its object")
	}
	return nil
}

// object reads an object and calls member for each key, to read its value. A key
// that comes twice is an error, for readers would differ in which they believe:
// "Duplicate keys are disallowed. Not all parsers may respect this."
func object(d *json.Decoder, member func(key string) error) error {
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return malformed("header: no object where one should be: %v", cmp.Or[any](err, open))
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return malformed("header: %v", err)
		}
		key := token.(string) // the decoder takes nothing else here
		if seen[key] {
			return malformed("header: the key %.100q comes twice", key)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed("header: %v", err)
	}
	return nil
}

// decodeMetadata reads "a special key __metadata__ [that] is allowed to contain free form
// string-to-string map. Arbitrary JSON is not allowed, all values must be strings."
func (f *File) decodeMetadata(d *json.Decoder) error {
	f.metadata = make(map[string]string)
	return object(d, func(key string) error {
		var value *string // null is no string
		if err := d.Decode(&value); err != nil || value == nil {
			return malformed("metadata %.100q is not a string", key)
		}
		f.metadata[key] = *value
		return nil
	})
}

// decodeInfo reads what the header says of one tensor, and checks it alone.
func decodeInfo(d *json.Decoder, name string) (Info, error) {
	i := Info{Name: name}
	var kind string
	var offsets []int64
	err := object(d, func(key string) error {
		var to any
		switch key {
		case "dtype":
			to = &kind
		case "shape":
			to = &i.Shape
		case "data_offsets":
			to = &offsets
		default: // the library ignores what it does not know of a tensor, too
			to = new(json.RawMessage)
		}
		if err := d.Decode(to); err != nil {
			return malformed("%.100q: %s: %v", name, key, err)
		}
		return nil
	})
	if err != nil {
		return i, err
	}
	// A shape of [] is a single element, which is why null is told from it.
	if len(offsets) != 2 || i.Shape == nil || len(i.Shape) > MaxDims {
		return i, malformed("%.100q: %d offsets and %d dimensions: want 2, and 0 to %d", name, len(offsets), len(i.Shape), MaxDims)
	}
	for _, k := range kinds {
		if k.name == kind {
			i.DType = k.dtype
		}
	}
	if !i.DType.Valid() {
		return i, fmt.Errorf("%.100q has elements of type %.20q, which are not read: %w", name, kind, ErrFormat)
	}
	// One number says what the others do, so a file can contradict itself: the product of the
	// shape, which may overflow, must be just the bytes between the offsets.
	i.begin, i.end = offsets[0], offsets[1]
	size, ok := tensorfile.Size(i.DType, i.Shape)
	if !ok || i.begin < 0 || i.end < i.begin || i.end-i.begin != size {
		return i, malformed("%.100q: a tensor %v%v does not take the bytes %v", name, i.DType, i.Shape, offsets)
	}
	return i, nil
}

// arrange sorts the tensors as they lie and checks that they fill size bytes
// without holes and without overlap: "The byte buffer needs to be entirely indexed, and
// cannot contain holes. This prevents the creation of polyglot files." Tensors of no
// elements may share their place, so their ends and names decide.
func (f *File) arrange(size int64) error {
	slices.SortFunc(f.tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	var end int64
	for at, t := range f.tensors {
		if t.begin != end {
			return malformed("%.100q begins at byte %d, and what lies before it ends at %d", t.Name, t.begin, end)
		}
		end = t.end
		f.index[t.Name] = at
	}
	if end != size {
		return malformed("the tensors end at byte %d of %d", end, size)
	}
	return nil
}
