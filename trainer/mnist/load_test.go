package mnist

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// nowhere is a fetcher that must not be asked.
func nowhere(t *testing.T) *fetcher {
	return &fetcher{cache: func() (string, error) {
		t.Error("the cache was asked for")
		return "", errors.New("nowhere")
	}}
}

func TestLoadSearchesInOrder(t *testing.T) {
	root := t.TempDir()
	given, env, cache := filepath.Join(root, "given"), filepath.Join(root, "env"), filepath.Join(root, "peermesh", "mnist")
	for _, dir := range []string{given, env, cache} {
		folder(t, dir, tiny())
	}
	cached := &fetcher{pins: pinned(tiny()), cache: func() (string, error) { return root, nil }}
	for _, c := range []struct {
		dir, env string
		fetcher  *fetcher
		want     string
	}{
		{given, env, nowhere(t), given},
		{given, "", nowhere(t), given},
		{"", env, nowhere(t), env},
		{"", "", cached, cache},
	} {
		t.Setenv("MNIST_DIR", c.env)
		d, err := load(context.Background(), Config{Dir: c.dir}, c.fetcher)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		} else if d.Dir != c.want || d.Train.Len() != 12 || d.Test.Len() != 3 {
			t.Errorf("read %d and %d images from %s, want 12 and 3 from %s", d.Train.Len(), d.Test.Len(), d.Dir, c.want)
		}
	}
}

// A folder that somebody named is never replaced by one that works.
func TestLoadDoesNotFallBack(t *testing.T) {
	good, bad := t.TempDir(), t.TempDir()
	folder(t, good, tiny())

	t.Setenv("MNIST_DIR", good)
	_, err := load(context.Background(), Config{Dir: bad}, nowhere(t))
	checkDataError(t, "the given folder", err, bad, "no train-images-idx3-ubyte.gz")

	t.Setenv("MNIST_DIR", bad)
	_, err = load(context.Background(), Config{}, nowhere(t))
	if d, ok := errors.AsType[*DataError](err); !ok || d.Path != bad || !strings.Contains(err.Error(), "MNIST_DIR") {
		t.Errorf("%v, want a DataError that names MNIST_DIR", err)
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	folder(t, dir, tiny())
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := Load(ctx, Config{Dir: dir}); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
}
