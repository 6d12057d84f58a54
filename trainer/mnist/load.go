package mnist

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Config says where to read. The zero value finds MNIST by itself.
type Config struct {
	// Dir is a folder with the four files. Empty: that in $MNIST_DIR, else the
	// user's cache, which is filled when it is not full yet.
	Dir string
}

// Data is MNIST, or a data set of its form.
type Data struct {
	Dir   string // where it was read
	Train *Set   // 60,000 images in MNIST
	Test  *Set   // 10,000
}

// Load reads the training and the test set, and first fetches them if Config
// and $MNIST_DIR name no folder and this user's cache lacks them. A context
// that ends stops the fetching and the reading.
//
// A folder whose files do not fit is a *DataError. Data that cannot be fetched
// is an error that tells the ways to have it.
func Load(ctx context.Context, c Config) (*Data, error) {
	return load(ctx, c, public())
}

func load(ctx context.Context, c Config, f *fetcher) (*Data, error) {
	if c.Dir != "" {
		return read(ctx, c.Dir)
	}
	if dir := os.Getenv("MNIST_DIR"); dir != "" {
		d, err := read(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%w (the folder is that in MNIST_DIR)", err)
		}
		return d, nil
	}
	dir, err := f.fill(ctx)
	if err != nil {
		return nil, err
	}
	return read(ctx, dir)
}

// read loads a folder. Nothing in it is pinned by its hash: other data sets
// come in the same form, and people are free to bring theirs.
func read(ctx context.Context, dir string) (*Data, error) {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, dataError(dir, err)
	case !info.IsDir():
		return nil, &DataError{dir, errors.New("not a folder")}
	}
	d := &Data{Dir: dir}
	for _, half := range []struct {
		name string
		set  **Set
	}{{"train", &d.Train}, {"t10k", &d.Test}} {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("mnist: reading %s: %w", dir, context.Cause(ctx))
		}
		set, err := readSet(dir, half.name)
		if err != nil {
			return nil, err
		}
		*half.set = set
	}
	return d, nil
}
