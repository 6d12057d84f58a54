package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/atomicfile"
)

// block is how many bytes are copied at a time from memory that cannot be seen.
const block = 1 << 18

// Write writes t as an NPY file.
func Write(w io.Writer, t tensor.Tensor) error {
	if err := write(w, t); err != nil {
		return fmt.Errorf("npy: writing %v: %w", t, err)
	}
	return nil
}

// Save is Write to a file, which it replaces as a whole or, on an error, not at all.
func Save(path string, t tensor.Tensor) error {
	return atomicfile.Write(path, func(w io.Writer) error { return Write(w, t) })
}

func write(w io.Writer, t tensor.Tensor) error {
	head, err := encode(t)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if p, ok := t.View(0, t.Bytes()); ok {
		_, err := w.Write(p)
		return err
	}
	p := make([]byte, min(t.Bytes(), block))
	for off := int64(0); off < t.Bytes(); off += int64(len(p)) {
		p = p[:min(int64(len(p)), t.Bytes()-off)]
		if _, err := t.ReadAt(p, off); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// encode is the header of t: spaces before its last byte align what follows.
func encode(t tensor.Tensor) ([]byte, error) {
	descr := ""
	for kind, dtype := range kinds {
		if dtype == t.DType() {
			descr = "<" + kind
			if dtype.Size() == 1 {
				descr = "|" + kind
			}
		}
	}
	shape := t.Shape()
	if descr == "" || len(shape) > MaxDims {
		return nil, fmt.Errorf("there is no such array in NumPy")
	}
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	// NumPy leaves room for the first dimension to grow in place, up to 21 digits.
	if len(shape) > 0 {
		text += strings.Repeat(" ", 21-len(fmt.Sprint(shape[0])))
	}
	p := append([]byte(magic), 1, 0, 0, 0)
	for p = append(p, text...); (len(p)+1)%align > 0; {
		p = append(p, ' ')
	}
	p = append(p, '\n')
	binary.LittleEndian.PutUint16(p[8:], uint16(len(p)-10))
	return p, nil
}
