package trainer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"peermesh/trainer/internal/atomicfile"
)

// files is what checkpoints need of a file system. Tests have one whose disk is
// full, or which loses power.
type files interface {
	MkdirAll(dir string) error
	ReadDir(dir string) ([]string, error) // the names; none if there is no such directory
	Create(name string) (writable, error)
	Open(name string) (readable, error) // errMissing if it is not there
	Rename(from, to string) error
	Remove(name string) error // of a file or an empty directory; none is no error
	SyncDir(dir string) error
}

type writable interface {
	io.WriteCloser
	Sync() error
}

type readable interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

var errMissing = errors.New("no such file")

func (c *Checkpoints) fs() files {
	if c.files == nil {
		return disk{}
	}
	return c.files
}

// writeFile leaves a file with what write writes, or no file of that name. temp is
// the name until then, which nobody else uses.
func writeFile(fs files, dir, name, temp string, write func(w io.Writer) error) (err error) {
	temp = filepath.Join(dir, temp)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", filepath.Join(dir, name), errors.Join(err, fs.Remove(temp)))
		}
	}()
	f, err := fs.Create(temp)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return fs.SyncDir(dir)
}

// readManifest reads no more than a manifest can be.
func readManifest(fs files, name string) (manifest, error) {
	f, err := fs.Open(name)
	if err != nil {
		return manifest{}, err
	}
	p, err := func() ([]byte, error) {
		n, err := f.Size()
		if err != nil {
			return nil, err
		}
		if n > maxManifest {
			return nil, fmt.Errorf("%w: a manifest of %d bytes", ErrFormat, n)
		}
		p := make([]byte, n)
		_, err = io.ReadFull(io.NewSectionReader(f, 0, n), p)
		return p, err
	}()
	if err = errors.Join(err, f.Close()); err != nil {
		return manifest{}, err
	}
	return decodeManifest(p)
}

// disk is the operating system's files.
type disk struct{}

func (disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o777) }

func (disk) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (disk) Create(name string) (writable, error) { return os.Create(name) }

func (disk) Open(name string) (readable, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return sized{f}, nil
}

type sized struct{ *os.File }

func (s sized) Size() (int64, error) {
	info, err := s.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) Remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (disk) SyncDir(dir string) error { return atomicfile.SyncDir(dir) }
