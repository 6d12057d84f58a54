package mnist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"peermesh/trainer/internal/atomicfile"
)

// A pin is a file of MNIST as it has always been published: whoever hands it
// to us, it is the same bytes or it is refused.
type pin struct {
	name string
	size int64
	sum  string // SHA-256 in hexadecimal
}

var pins = [...]pin{
	{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
	{"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
	{"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
	{"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}

// A fetcher fills the cache. Its fields are where the outside world comes in,
// so that tests can bring their own.
type fetcher struct {
	pins    []pin
	cache   func() (string, error) // the user's cache folder
	goTool  string                 // the go command
	mirrors []string               // at least one URL that a file's name is appended to
	client  *http.Client
}

// fill returns the cache folder, with the four files in it.
//
// Any number of processes may fill one cache at once, as the ranks of a first
// run do. There is no lock to be left behind by a dead one: each writes files
// of its own and renames them into place, and since all write the same bytes
// it does not matter who is last.
func (f *fetcher) fill(ctx context.Context) (string, error) {
	root, err := f.cache()
	if err != nil {
		return "", noData(fmt.Errorf("there is no cache folder: %w", err))
	}
	dir := filepath.Join(root, "peermesh", "mnist")
	var missing []pin
	for _, p := range f.pins {
		if !p.in(dir) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", noData(err)
	}
	for _, source := range []func(context.Context, string, []pin) error{f.fromModule, f.fromMirrors} {
		failed := source(ctx, dir, missing)
		if failed == nil {
			return dir, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("mnist: fetching MNIST: %w", context.Cause(ctx))
		}
		err = also(err, failed)
	}
	return "", noData(err)
}

// noData ends a search for the data with what to do about it.
func noData(err error) error {
	return fmt.Errorf("mnist: cannot fetch MNIST: %w. Do one of three: give a folder with its four files "+
		"(--data DIR, or MNIST_DIR in the environment); or install a go command that reaches its module proxy; "+
		"or let this machine reach a mirror over HTTPS", err)
}

// also is errors.Join on one line.
func also(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// in reports whether the folder has the file, whole. A cache is checked at
// every start: that takes milliseconds, and a damaged file mends itself.
func (p pin) in(dir string) bool {
	f, err := os.Open(filepath.Join(dir, p.name))
	if err != nil {
		return false
	}
	defer f.Close()
	return p.copy(io.Discard, f) == nil
}

// copy copies the file from r to w and fails unless it was that file. It reads
// at most one byte more than the file has.
func (p pin) copy(w io.Writer, r io.Reader) error {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(r, p.size+1))
	if err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); n != p.size || sum != p.sum {
		return fmt.Errorf("%s is not MNIST's: its SHA-256 begins %.8s (%d bytes), want %.8s (%d)", p.name, sum, n, p.sum, p.size)
	}
	return nil
}

// install puts the file that r holds into a folder: nobody ever sees a part of
// it, and a crash of the machine leaves all or nothing.
func (p pin) install(dir string, r io.Reader) error {
	err := atomicfile.Write(filepath.Join(dir, p.name), func(w io.Writer) error { return p.copy(w, r) })
	if _, renaming := errors.AsType[*os.LinkError](err); renaming && p.in(dir) {
		return nil // where an open file cannot be replaced, another was first
	}
	return err
}
