package tensor

import "fmt"

// copyBlock bounds the host memory, in bytes, that stands in for memory which the
// host cannot address. It holds whole elements.
const copyBlock = 1 << 20

// Copy copies src's elements to dst, in flat order. The two have one element
// type and one number of elements; the shapes may differ. On the host they may
// overlap.
func Copy(dst, src Tensor) error {
	if dst.dtype != src.dtype || dst.n != src.n {
		return fmt.Errorf("tensor: copy of %v to %v", src, dst)
	}
	if p, ok := src.View(0, src.Bytes()); ok {
		_, err := dst.WriteAt(p, 0)
		return err
	}
	if p, ok := dst.View(0, dst.Bytes()); ok {
		_, err := src.ReadAt(p, 0)
		if dst.dtype == Bool {
			normalise(p, p)
		}
		return err
	}
	block := make([]byte, min(src.Bytes(), copyBlock))
	for off := int64(0); off < src.Bytes(); off += int64(len(block)) {
		block = block[:min(int64(len(block)), src.Bytes()-off)]
		if _, err := src.ReadAt(block, off); err != nil {
			return err
		}
		if _, err := dst.WriteAt(block, off); err != nil {
			return err
		}
	}
	return nil
}
