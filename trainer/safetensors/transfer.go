package safetensors

import (
	"fmt"
	"io"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/tensorfile"
)

// block is how many bytes of elements are in memory at a time, where they cannot
// be read to their place. It holds whole elements of every type.
const block = 1 << 18

// fill reads the elements that i describes into dst, of as many.
func (f *File) fill(dst tensor.Tensor, i Info) error {
	// Offsets are from the tensor's first byte here, from the file's there.
	read := func(p []byte, off int64) error { return tensorfile.ReadFull(f.r, p, f.data+i.begin+off) }
	var err error
	// A bool is any byte in a file, and 0 or 1 in memory: WriteAt sees to that.
	if p, ok := dst.View(0, dst.Bytes()); ok && dst.DType() == i.DType && i.DType != tensor.Bool {
		err = read(p, 0)
	} else {
		err = pump(i.Bytes(), i.DType, dst.DType(), read, func(p []byte, off int64) error {
			_, err := dst.WriteAt(p, off)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("safetensors: reading %q: %w", i.Name, err)
	}
	return nil
}

// emit writes src's elements to w as elements of type to. What lies in the host's memory in
// that type goes out as it is; anything else, such as a GPU's memory, is read block by block,
// so that a file takes no second model's room.
func emit(w io.Writer, src tensor.Tensor, to tensor.DType) error {
	if p, ok := src.View(0, src.Bytes()); ok && src.DType() == to {
		_, err := w.Write(p)
		return err
	}
	read := func(p []byte, off int64) error {
		_, err := src.ReadAt(p, off)
		return err
	}
	return pump(src.Bytes(), src.DType(), to, read, func(p []byte, _ int64) error {
		_, err := w.Write(p)
		return err
	})
}

// pump moves size bytes of elements from read to write, block by block, and
// converts them on the way.
func pump(size int64, from, to tensor.DType, read, write func(p []byte, off int64) error) error {
	// Every element's size divides block, so a block's elements are whole at both ends, and
	// the same element is at off/a·b of what is written.
	a, b := int64(from.Size()), int64(to.Size())
	in := make([]byte, min(size, block))
	out := in
	if from != to {
		out = make([]byte, int64(len(in))/a*b)
	}
	for off := int64(0); off < size; off += int64(len(in)) {
		in = in[:min(int64(len(in)), size-off)]
		if err := read(in, off); err != nil {
			return err
		}
		out = out[:int64(len(in))/a*b]
		if from != to {
			if err := convert(out, to, in, from); err != nil {
				return err
			}
		}
		if err := write(out, off/a*b); err != nil {
			return err
		}
	}
	return nil
}
