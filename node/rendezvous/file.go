package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"peermesh/node"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// inFolder is the file's name where the form names a folder.
	inFolder = "peermesh-rendezvous"
	// lockPatience is how long the others may hold the lock: milliseconds, if they live.
	lockPatience = 30 * time.Second
	// dialsAtOnce bounds the dials that look for stale entries.
	dialsAtOnce = 16
)

// A file is a rendezvous in a file that all peers share.
type file struct{ form, path string }

func (f *file) String() string { return f.form }

// parseFile takes a path on this machine: file:///path, or file://localhost/path.
func parseFile(form string) (*file, error) {
	u, err := url.Parse(form)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" || u.RawQuery != "" {
		return nil, errors.New("want file:///path, with three slashes and an absolute path")
	}
	path := filepath.FromSlash(u.Path)
	if info, err := os.Stat(path); strings.HasSuffix(u.Path, "/") || err == nil && info.IsDir() {
		path = filepath.Join(path, inFolder)
	}
	return &file{form: form, path: path}, nil
}

// Find enters the node, tells of the others, and goes on looking for those who come
// later. When ctx ends it takes the entry out again.
func (f *file) Find(ctx context.Context, s Search) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return fmt.Errorf("rendezvous: %s: %w", f.form, err)
	}
	v := &visit{file: f, search: s, since: time.Now().UTC(), seen: make(map[peer.ID]entry)}
	err := again(ctx, func() (bool, error) { return false, v.look(ctx) })
	return errors.Join(err, v.leave())
}

// A visit is one node's time at a file.
type visit struct {
	*file
	search Search
	since  time.Time
	seen   map[peer.ID]entry // entries told of, or dialled in vain
}

// look reads the file, tells of whom is new there, and takes out who is gone.
func (v *visit) look(ctx context.Context) error {
	all, err := v.read()
	if err != nil {
		return err
	}
	var fresh []entry
	for _, e := range all {
		if e.Mesh == v.search.Mesh && e.id != v.search.Node.ID() && !v.seen[e.id].same(e) {
			fresh = append(fresh, e)
			v.seen[e.id] = e
		}
	}
	gone := v.unanswered(ctx, fresh)
	for _, e := range fresh {
		if !slices.ContainsFunc(gone, e.same) {
			v.search.Found(peer.AddrInfo{ID: e.id, Addrs: e.addrs})
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	own := v.own()
	if len(gone) == 0 && slices.ContainsFunc(all, own.same) {
		return nil
	}
	return v.change(ctx, func(all []entry) []entry {
		all = slices.DeleteFunc(all, func(e entry) bool { return e.id == own.id && e.Mesh == own.Mesh || slices.ContainsFunc(gone, e.same) })
		return append(all, own)
	})
}

// own is the node's entry.
func (v *visit) own() entry {
	e := entry{Mesh: v.search.Mesh, Since: v.since, id: v.search.Node.ID()}
	for _, a := range v.search.Node.Addrs() {
		if len(e.Peer) < maxEntryAddrs {
			e.Peer = append(e.Peer, a.String())
		}
	}
	return e
}

// unanswered are the entries at whose addresses nobody answers, or another.
func (v *visit) unanswered(ctx context.Context, entries []entry) (gone []entry) {
	var (
		mu    sync.Mutex
		dials sync.WaitGroup
		slots = make(chan struct{}, dialsAtOnce)
	)
	for _, e := range entries {
		slots <- struct{}{}
		dials.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, dialPatience)
			defer cancel()
			err := v.search.Node.Connect(ctx, peer.AddrInfo{ID: e.id, Addrs: e.addrs})
			if err != nil && !errors.Is(err, node.ErrSecret) && !errors.Is(err, node.ErrNotAllowed) { // which are answers
				logger.Infof("%s: %s, entered at %s, does not answer: %v", v.form, e.id, e.Since.Format(time.RFC3339), err)
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, e)
			}
		})
	}
	dials.Wait()
	if ctx.Err() != nil { // it was we who hung up
		return nil
	}
	return gone
}

// leave takes the node's entry out, and the last one the file. Where others write at the
// same time as the node is closing they may take a while.
func (v *visit) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialPatience)
	defer cancel()
	err := v.change(ctx, func(all []entry) []entry {
		return slices.DeleteFunc(all, func(e entry) bool { return e.id == v.search.Node.ID() && e.Mesh == v.search.Mesh })
	})
	if errors.Is(err, fs.ErrNotExist) { // the folder is gone, and with it the entry
		return nil
	}
	return err
}

// read is the file as it stands.
func (f *file) read() ([]entry, error) {
	data, err := readUpTo(f.path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s: %w", f.form, err)
	}
	all, err := readEntries(data)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s: %w: it is some other file, or damaged; move it away", f.form, err)
	}
	return all, nil
}

// readUpTo reads a file that others can write: nothing if there is none, and a byte more
// than most if it is longer.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// change replaces the file under its lock.
func (f *file) change(ctx context.Context, to func([]entry) []entry) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := lock(ctx, f.path+".lock")
	if err != nil {
		return fmt.Errorf("rendezvous: %s: %w", f.form, err)
	}
	defer unlock()
	all, err := f.read()
	if err != nil {
		return err
	}
	if all = to(all); len(all) == 0 {
		err = os.Remove(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = f.replace(all)
	}
	if err != nil {
		return fmt.Errorf("rendezvous: %s: %w", f.form, err)
	}
	return nil
}

// replace writes the file anew, in one step.
func (f *file) replace(all []entry) (err error) {
	data, err := writeEntries(all)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(f.path), ".rendezvous-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	_, err = out.Write(data)
	if err == nil {
		err = out.Chmod(0o644) // peers of other users read it, too
	}
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), f.path)
}
