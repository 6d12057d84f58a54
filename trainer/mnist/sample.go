package mnist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// A Sample is an image and its label. The image is the set's: it is not to be
// changed.
type Sample struct {
	Image []byte // Pixels of them, row by row
	Label uint8  // below Classes
}

// At is sample i, so that a Set is a Dataset of package trainer/data. It does not
// fail.
func (s *Set) At(i int) (Sample, error) {
	return Sample{Image: s.Images[i*Pixels:][:Pixels:Pixels], Label: s.Labels[i]}, nil
}

// DebianFashion is the folder of Fashion-MNIST on Debian and what descends from it,
// when the package dataset-fashion-mnist is installed.
const DebianFashion = "/usr/share/datasets/fashion-mnist"

// FashionNames are those of Fashion-MNIST's classes.
var FashionNames = [Classes]string{"T-shirt/top", "trouser", "pullover", "dress", "coat",
	"sandal", "shirt", "sneaker", "bag", "ankle boot"}

// LoadFashion reads Fashion-MNIST from a folder with its four files: as many images
// of the same size as MNIST, of clothes in ten classes, and harder. Empty:
// DebianFashion. Files that are not there are a *DataError that says where to get
// them; nothing is downloaded.
func LoadFashion(ctx context.Context, dir string) (*Data, error) {
	if dir == "" {
		dir = DebianFashion
	}
	d, err := read(ctx, dir)
	if wrong, ok := errors.AsType[*DataError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return nil, &DataError{wrong.Path, fmt.Errorf("%w: Debian's package dataset-fashion-mnist has Fashion-MNIST, in %s; "+
			"its four files are also at https://github.com/zalandoresearch/fashion-mnist, to be put into a folder and given", wrong.Err, DebianFashion)}
	}
	return d, err
}
