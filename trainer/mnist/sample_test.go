package mnist

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"peermesh/trainer/data"
)

var _ data.Dataset[Sample] = (*Set)(nil)

func TestAt(t *testing.T) {
	s := &Set{Images: make([]byte, 3*Pixels), Labels: []byte{7, 2, 9}}
	s.Images[Pixels], s.Images[2*Pixels-1] = 3, 4
	x, err := s.At(1)
	if err != nil || x.Label != 2 || len(x.Image) != Pixels || cap(x.Image) != Pixels || x.Image[0] != 3 || x.Image[Pixels-1] != 4 {
		t.Errorf("label %d, %d pixels, %v", x.Label, len(x.Image), err)
	}
}

func TestLoadFashionFromAFolder(t *testing.T) {
	dir := t.TempDir()
	folder(t, dir, tiny())
	t.Setenv("MNIST_DIR", "/there/is/no/such/folder") // which is not asked
	d, err := LoadFashion(context.Background(), dir)
	if err != nil || d.Train.Len() != 12 || d.Dir != dir {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestLoadFashionSaysWhereToGetIt(t *testing.T) {
	empty := t.TempDir()
	none := filepath.Join(empty, "none")
	for _, dir := range []string{empty, none} {
		_, err := LoadFashion(context.Background(), dir)
		checkDataError(t, dir, err, dir, "dataset-fashion-mnist")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not ErrNotExist", err)
		}
	}
	files := tiny()
	files["t10k-labels-idx1-ubyte.gz"] = []byte("torn")
	folder(t, empty, files)
	_, err := LoadFashion(context.Background(), empty)
	if err == nil || strings.Contains(err.Error(), "dataset-fashion-mnist") {
		t.Errorf("%v, though all files are there", err)
	}
}

// The real data, where Debian's package is installed.
func TestLoadFashionOfDebian(t *testing.T) {
	if _, err := os.Stat(DebianFashion); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("there is no %s: the package dataset-fashion-mnist has it", DebianFashion)
	}
	d, err := LoadFashion(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d.Train.Len() != 60000 || d.Test.Len() != 10000 {
		t.Errorf("%d and %d images", d.Train.Len(), d.Test.Len())
	}
	first := d.Train.Labels[:10] // as published: an ankle boot, two shirts, …
	if want := []byte{9, 0, 0, 3, 0, 2, 7, 2, 5, 5}; !slices.Equal(first, want) {
		t.Errorf("labels %v, want %v", first, want)
	}
}
