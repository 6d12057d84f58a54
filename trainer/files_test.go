package trainer

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var (
	errPower = errors.New("power is out")
	errFull  = errors.New("no space left on device")
)

// frail is a file system in memory that can fill up and lose power. What is not
// synchronised when it does is half lost: the tail of a file, and all names since
// the directory was.
type frail struct {
	mu      sync.Mutex
	now     map[string]*frailFile // by name
	durable map[string]*frailFile // what a loss of power leaves
	dirs    map[string]bool

	calls int
	outAt int // the call at which power fails; zero: never
	space int // bytes that may still be written; negative: any number
}

type frailFile struct {
	fs     *frail
	data   []byte
	synced int
}

func newFrail() *frail {
	return &frail{now: map[string]*frailFile{}, durable: map[string]*frailFile{}, dirs: map[string]bool{}, space: -1}
}

// call counts one, and fails if power has. The caller holds the lock.
func (f *frail) call() error {
	if f.calls++; f.outAt > 0 && f.calls >= f.outAt {
		return errPower
	}
	return nil
}

// reboot is what is found after a loss of power.
func (f *frail) reboot() {
	f.now = maps.Clone(f.durable)
	for _, file := range f.now {
		file.data = file.data[:file.synced+(len(file.data)-file.synced)/2]
		file.synced = len(file.data)
	}
	f.outAt = 0
}

func (f *frail) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs[dir] = true
	return f.call()
}

func (f *frail) ReadDir(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for name := range f.now {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			seen[first] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), f.call()
}

func (f *frail) Create(name string) (writable, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return nil, err
	}
	f.now[name] = &frailFile{fs: f}
	return f.now[name], nil
}

func (f *frail) Open(name string) (readable, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return nil, err
	}
	file := f.now[name]
	if file == nil {
		return nil, errMissing
	}
	return snapshot{bytes.NewReader(file.data)}, nil
}

type snapshot struct{ *bytes.Reader }

func (s snapshot) Size() (int64, error) { return s.Reader.Size(), nil }
func (s snapshot) Close() error         { return nil }

func (f *frail) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return err
	}
	f.now[to] = f.now[from]
	delete(f.now, from)
	return nil
}

func (f *frail) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return err
	}
	delete(f.now, name)
	return nil
}

func (f *frail) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return err
	}
	maps.DeleteFunc(f.durable, func(name string, _ *frailFile) bool { return filepath.Dir(name) == dir })
	for name, file := range f.now {
		if filepath.Dir(name) == dir {
			f.durable[name] = file
		}
	}
	return nil
}

func (f *frailFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.call(); err != nil {
		return 0, err
	}
	if f.fs.space >= 0 {
		if len(p) > f.fs.space {
			f.data = append(f.data, p[:f.fs.space]...)
			p, f.fs.space = p[:f.fs.space], 0
			return len(p), errFull
		}
		f.fs.space -= len(p)
	}
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *frailFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.call(); err != nil {
		return err
	}
	f.synced = len(f.data)
	return nil
}

func (f *frailFile) Close() error { return nil }

var _ io.ReaderAt = snapshot{}
