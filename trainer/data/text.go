package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// MaxText bounds the bytes of ReadText.
const MaxText = 1 << 30

// A Window is a sample of a text for a model that reads bytes and tells the next:
// after X[:i+1] comes Y[i]. The two share memory, Y one byte on.
type Window struct{ X, Y []byte }

// Windows are those of length bytes in a text, stride bytes apart; zero: length,
// so that every byte is to be told once. The last ones that do not fit are left
// out. The samples share the text's memory.
func Windows(text []byte, length, stride int) (Dataset[Window], error) {
	n, stride, err := windows(int64(len(text)), length, stride)
	if err != nil {
		return nil, err
	}
	return Func[Window]{N: n, F: func(i int) (Window, error) {
		p := text[i*stride:][: length+1 : length+1]
		return Window{p[:length:length], p[1:]}, nil
	}}, nil
}

// WindowsAt is Windows of size bytes that r has, such as a file too long for
// memory. Each sample is read when it is asked for.
func WindowsAt(r io.ReaderAt, size int64, length, stride int) (Dataset[Window], error) {
	n, stride, err := windows(size, length, stride)
	if err != nil {
		return nil, err
	}
	return Func[Window]{N: n, F: func(i int) (Window, error) {
		p := make([]byte, length+1)
		if k, err := r.ReadAt(p, int64(i)*int64(stride)); k < len(p) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return Window{}, fmt.Errorf("byte %d of the text: %w", int64(i)*int64(stride)+int64(k), err)
		}
		return Window{p[:length:length], p[1:]}, nil
	}}, nil
}

// windows is how many there are, and how far apart.
func windows(size int64, length, stride int) (n, step int, err error) {
	if stride == 0 {
		stride = length
	}
	if length < 1 || length >= MaxText || stride < 1 || stride > MaxText {
		return 0, 0, fmt.Errorf("data: windows of %d bytes, %d apart: want 1 to %d", length, stride, MaxText-1)
	}
	if size <= int64(length) {
		return 0, 0, fmt.Errorf("data: a text of %d bytes: windows of %d need one more than that", size, length)
	}
	count := (size-int64(length)-1)/int64(stride) + 1
	if int64(int(count)) != count {
		return 0, 0, fmt.Errorf("data: %d windows are too many", count)
	}
	return int(count), stride, nil
}

// ReadText is the files of a file system that match one of the patterns, as
// path.Match does their base names, one after the other in the order of their
// paths: a corpus from what is at hand. It is at most limit bytes long, and ends
// there; zero means MaxText, which is also the most.
func ReadText(fsys fs.FS, limit int, patterns ...string) ([]byte, error) {
	if limit == 0 {
		limit = MaxText
	}
	if limit < 0 || limit > MaxText {
		return nil, fmt.Errorf("data: a text of %d bytes: want 0 to %d", limit, MaxText)
	}
	var text []byte
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		wanted, err := matches(path.Base(name), patterns)
		if err != nil || !wanted {
			return err
		}
		text, err = appendFile(text, fsys, name, limit)
		if err == nil && len(text) == limit {
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data: reading text: %w", err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("data: reading text: no file with any matches %q", patterns)
	}
	return text, nil
}

func matches(name string, patterns []string) (bool, error) {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// appendFile adds a file, up to limit.
func appendFile(text []byte, fsys fs.FS, name string, limit int) (_ []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p, err := io.ReadAll(io.LimitReader(f, int64(limit-len(text))))
	return append(text, p...), err
}
