package compress

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// An encoded Feedback, little-endian:
//
//	4  "PMFB"
//	4  version, 1
//	4  number of parameters, and for each, by name in ascending order:
//	   2  length of the name, and its bytes
//	   1  element type, float32 or float64, as tensor.DType numbers them
//	   8  number of elements, and their bytes
const (
	feedbackMagic   = "PMFB"
	feedbackVersion = 1
	maxName         = 1 << 12 // bytes, as of a trainer.State
)

// MarshalBinary encodes what the feedback has, for this rank to go on from. It has the
// size of the parameters.
func (f *Feedback) MarshalBinary() ([]byte, error) {
	p := append([]byte(nil), feedbackMagic...)
	p = binary.LittleEndian.AppendUint32(p, feedbackVersion)
	p = binary.LittleEndian.AppendUint32(p, uint32(len(f.at)))
	for _, name := range slices.Sorted(maps.Keys(f.at)) {
		if len(name) > maxName {
			return nil, fmt.Errorf("compress: feedback: a name of %d bytes: at most %d", len(name), maxName)
		}
		x := f.at[name]
		p = binary.LittleEndian.AppendUint16(p, uint16(len(name)))
		p = append(append(p, name...), byte(x.DType()))
		p = binary.LittleEndian.AppendUint64(p, uint64(x.Len()))
		p = append(p, bytesOf(x)...)
	}
	return p, nil
}

// UnmarshalBinary takes the place of what the feedback has. It reads exactly what
// MarshalBinary writes, and makes no more room than p has bytes. On an error, which wraps
// trainer.ErrFormat, nothing has changed. Parameters that the model does not have, or
// has in another size, are passed over when their bucket comes.
func (f *Feedback) UnmarshalBinary(p []byte) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("compress: feedback: %w: "+format, append([]any{trainer.ErrFormat}, args...)...)
	}
	if len(p) < 12 || string(p[:4]) != feedbackMagic {
		return bad("it does not begin with %q", feedbackMagic)
	}
	if v := binary.LittleEndian.Uint32(p[4:]); v != feedbackVersion {
		return bad("version %d: this program reads %d", v, feedbackVersion)
	}
	count := binary.LittleEndian.Uint32(p[8:])
	if count > trainer.MaxStateTensors {
		return bad("%d parameters: at most %d", count, trainer.MaxStateTensors)
	}
	at, last := make(map[string]tensor.Tensor), ""
	p = p[12:]
	for i := range count {
		name, x, rest, ok := feedbackOf(p)
		switch {
		case !ok:
			return bad("parameter %d of %d", i, count)
		case i > 0 && name <= last:
			return bad("%q comes after %q", name, last)
		}
		at[name], last, p = x, name, rest
	}
	if len(p) > 0 {
		return bad("%d bytes after the end", len(p))
	}
	*f = Feedback{at: at}
	return nil
}

// feedbackOf reads one parameter's.
func feedbackOf(p []byte) (name string, x tensor.Tensor, rest []byte, ok bool) {
	if len(p) < 2 {
		return "", x, nil, false
	}
	n := int(binary.LittleEndian.Uint16(p))
	if p = p[2:]; n > maxName || len(p) < n+9 {
		return "", x, nil, false
	}
	name, p = string(p[:n]), p[n:]
	t, count := tensor.DType(p[0]), binary.LittleEndian.Uint64(p[1:])
	if p = p[9:]; t != tensor.Float32 && t != tensor.Float64 || count > uint64(len(p)/t.Size()) {
		return "", x, nil, false
	}
	x = tensor.New(t, int(count))
	return name, x, p[copy(bytesOf(x), p):], true
}
