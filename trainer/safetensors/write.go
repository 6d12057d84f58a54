package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/internal/atomicfile"
	"peermesh/trainer/internal/tensorfile"
)

// Options say how a file is written. The zero value writes the values as they are.
type Options struct {
	// Metadata goes into the header. Some readers, such as Hugging Face's
	// transformers, want "format" to be "pt".
	Metadata map[string]string
	// DType, if not zero, is a float type that all floats become.
	DType tensor.DType
	// Rename gives a parameter's name in the file. Nil: its own.
	Rename func(name string) string
}

// Save writes the values of params to a file, with permissions 0644. It replaces
// one of that name as a whole, or on an error not at all.
func Save(path string, params []*trainer.Param, o Options) error {
	p, err := newPlan(params, o)
	if err == nil {
		err = atomicfile.Write(path, p.write)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// Write is Save to a writer.
func Write(w io.Writer, params []*trainer.Param, o Options) error {
	p, err := newPlan(params, o)
	if err == nil {
		err = p.write(w)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// A plan is a file before it is written: the header comes first and has all offsets, so all
// is laid out before a byte is written.
type plan struct {
	header []byte
	values []tensor.Tensor // as they will lie
	infos  []Info
}

// newPlan lays params out.
func newPlan(params []*trainer.Param, o Options) (*plan, error) {
	if _, ok := floats[o.DType]; o.DType != 0 && !ok {
		return nil, fmt.Errorf("floats cannot all become %v", o.DType)
	}
	if len(params) > MaxTensors {
		return nil, fmt.Errorf("%d tensors: at most %d", len(params), MaxTensors)
	}
	type entry struct {
		info  Info
		value tensor.Tensor
	}
	entries := make([]entry, 0, len(params))
	seen := map[string]bool{metadataName: true} // a tensor of this name would be read as metadata
	for _, p := range params {
		info, err := describe(p, o)
		if err != nil {
			return nil, err
		}
		if seen[info.Name] {
			return nil, fmt.Errorf("the name %q is taken", info.Name)
		}
		seen[info.Name] = true
		entries = append(entries, entry{info, p.Value})
	}
	// As the library's prepare: the widest first keeps each at a multiple of its size, for
	// readers that map the file.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(kindOf(b.info.DType), kindOf(a.info.DType)), cmp.Compare(a.info.Name, b.info.Name))
	})
	p := new(plan)
	var end int64
	for _, e := range entries {
		size, _ := tensorfile.Size(e.info.DType, e.info.Shape) // that of a tensor that there is
		e.info.begin, e.info.end = end, end+size
		end += size
		p.infos = append(p.infos, e.info)
		p.values = append(p.values, e.value)
	}
	var err error
	p.header, err = encode(p.infos, o.Metadata)
	return p, err
}

// describe is p's Info, without its place. It refuses what no reader would take, so that a
// mistake is found by who saves and not by who loads: names that are not UTF-8, which JSON
// cannot hold, and more dimensions than are read here.
func describe(p *trainer.Param, o Options) (Info, error) {
	if p == nil || !p.Value.DType().Valid() {
		return Info{}, fmt.Errorf("a parameter has no value")
	}
	i := Info{Name: p.Name, DType: p.Value.DType(), Shape: p.Value.Shape()}
	if o.Rename != nil {
		i.Name = o.Rename(i.Name)
	}
	if !utf8.ValidString(i.Name) {
		return i, fmt.Errorf("the name %q is not UTF-8", i.Name)
	}
	if len(i.Shape) > MaxDims {
		return i, fmt.Errorf("%q has %d dimensions: at most %d", i.Name, len(i.Shape), MaxDims)
	}
	if _, ok := floats[i.DType]; ok && o.DType != 0 {
		i.DType = o.DType
	}
	return i, nil
}

// kindOf is the place of an element type among the kinds.
func kindOf(t tensor.DType) int {
	for at, k := range kinds {
		if k.dtype == t {
			return at
		}
	}
	return -1
}

// encode is the header with its length. Spaces at its end align what follows, to the 8 bytes
// of the length. Members are written one by one, since the order of a Go map's is no
// function of its contents, and a header is to be.
func encode(infos []Info, metadata map[string]string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, prefix)) // the length comes at the end
	text := json.NewEncoder(b)
	text.SetEscapeHTML(false) // names stay as they are, for readers that compare bytes
	member := func(name string, value any) error {
		if b.Len() == prefix {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		if err := text.Encode(name); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the encoder ends each value with a line's end
		b.WriteByte(':')
		if err := text.Encode(value); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1)
		return nil
	}
	if len(metadata) > 0 {
		// JSON would replace what is no text, and readers would see other strings than were given.
		for _, s := range slices.Concat(slices.Collect(maps.Keys(metadata)), slices.Collect(maps.Values(metadata))) {
			if !utf8.ValidString(s) {
				return nil, fmt.Errorf("metadata: %q is not UTF-8", s)
			}
		}
		if err := member(metadataName, metadata); err != nil {
			return nil, err
		}
	}
	for _, i := range infos {
		err := member(i.Name, struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{kinds[kindOf(i.DType)].name, i.Shape, [2]int64{i.begin, i.end}})
		if err != nil {
			return nil, err
		}
	}
	if b.Len() == prefix { // no tensors are a file, too
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%prefix > 0 {
		b.WriteByte(' ')
	}
	p := b.Bytes()
	if len(p)-prefix > MaxHeader {
		return nil, fmt.Errorf("a header of %d bytes: at most %d", len(p)-prefix, MaxHeader)
	}
	binary.LittleEndian.PutUint64(p, uint64(len(p)-prefix))
	return p, nil
}

// write writes the file from front to back, and asks of w no more than that.
func (p *plan) write(w io.Writer) error {
	if _, err := w.Write(p.header); err != nil {
		return err
	}
	for at, v := range p.values {
		if err := emit(w, v, p.infos[at].DType); err != nil {
			return fmt.Errorf("%q: %w", p.infos[at].Name, err)
		}
	}
	return nil
}
