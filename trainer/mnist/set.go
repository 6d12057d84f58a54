package mnist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	Side    = 28          // of an image, in pixels
	Pixels  = Side * Side // of an image
	Classes = 10          // labels are 0 … 9
)

// A Set is N labelled images. It is not changed after loading, so goroutines
// may share it.
type Set struct {
	Images []byte // N × Side × Side, row by row; 0 is the background, 255 full ink
	Labels []byte // N, each below Classes
}

// Len is the number of images, N.
func (s *Set) Len() int { return len(s.Labels) }

// Fill gathers a batch, normalised: for the k-th of the indices it sets
// x[k·Pixels : (k+1)·Pixels] to the image, each pixel v as (v/255 − mean)/std,
// and y[k] to the label. It allocates nothing.
//
// A pixel has 256 values, so there are 256 results: they are computed once a
// call, in float32 and in the order of torchvision's ToTensor and Normalize,
// and looked up. x and y may be longer than the batch; an index out of range,
// or a shorter x or y, panics.
func (s *Set) Fill(x []float32, y []uint8, indices []int, mean, std float32) {
	var table [256]float32
	for v := range table {
		table[v] = (float32(v)/255 - mean) / std
	}
	for k, i := range indices {
		row := x[k*Pixels:][:Pixels]
		for p, v := range s.Images[i*Pixels:][:Pixels] {
			row[p] = table[v]
		}
		y[k] = s.Labels[i]
	}
}

// readSet reads the images and labels of one half, "train" or "t10k", and
// checks all that can be checked without knowing which data it is.
func readSet(dir, half string) (*Set, error) {
	path, images, err := readPart(dir, half+"-images", 3)
	if err != nil {
		return nil, err
	}
	n := images.Shape[0]
	if want := []int{n, Side, Side}; n == 0 || !slices.Equal(images.Shape, want) {
		return nil, &DataError{path, fmt.Errorf("its shape is %v, want [N %d %d] with some images", images.Shape, Side, Side)}
	}
	path, labels, err := readPart(dir, half+"-labels", 1)
	if err != nil {
		return nil, err
	}
	if want := []int{n}; !slices.Equal(labels.Shape, want) {
		return nil, &DataError{path, fmt.Errorf("its shape is %v, want %v: one label for each image", labels.Shape, want)}
	}
	for i, label := range labels.Data {
		if label >= Classes {
			return nil, &DataError{path, fmt.Errorf("label %d is %d, want below %d", i, label, Classes)}
		}
	}
	return &Set{Images: images.Data, Labels: labels.Data}, nil
}

// readPart reads the file of a stem and a number of dimensions, under the
// first of its usual names that is there.
func readPart(dir, stem string, dims int) (string, *IDX, error) {
	for _, name := range names(stem, dims) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		x, err := ReadIDX(path)
		return path, x, err
	}
	return "", nil, &DataError{dir, &missing{names(stem, dims)[0]}}
}

// missing is a file that a folder does not have under any of its names.
type missing struct{ name string }

func (m *missing) Error() string { return "no " + m.name + " in this folder, packed or unpacked" }

func (m *missing) Is(target error) bool { return target == fs.ErrNotExist }

// names are those of the MNIST page and Debian's packages, the same unpacked,
// and those that some archives make of them.
func names(stem string, dims int) []string {
	dash := fmt.Sprintf("%s-idx%d-ubyte", stem, dims)
	dot := fmt.Sprintf("%s.idx%d-ubyte", stem, dims)
	return []string{dash + ".gz", dash, dot, dot + ".gz"}
}
