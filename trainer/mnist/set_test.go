package mnist

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	s := &Set{Images: make([]byte, 3*Pixels), Labels: []byte{7, 2, 9}}
	s.Images[0], s.Images[2*Pixels+5], s.Images[3*Pixels-1] = 255, 51, 1

	x, y := make([]float32, 2*Pixels+1), make([]uint8, 3)
	x[2*Pixels], y[2] = 42, 42 // past the batch
	const mean, std = 0.1307, 0.3081
	s.Fill(x, y, []int{2, 0}, mean, std)

	// torchvision: Normalize((mean,), (std,))(ToTensor()(v)), rounded to
	// float32 at each of its three steps, so equal to the last bit.
	const zero, one, fifty1, full = -0.42421296, -0.41148472, 0.22492696, 2.8214867
	for i, want := range map[int]float32{0: zero, 5: fifty1, Pixels - 1: one, Pixels: full, Pixels + 1: zero, 2 * Pixels: 42} {
		if x[i] != want {
			t.Errorf("x[%d] = %v, want %v", i, x[i], want)
		}
	}
	if want := []uint8{9, 7, 42}; !slices.Equal(y, want) {
		t.Errorf("y = %v, want %v", y, want)
	}
	if s.Len() != 3 {
		t.Errorf("Len = %d, want 3", s.Len())
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	s := &Set{Images: make([]byte, 8*Pixels), Labels: make([]byte, 8)}
	x, y := make([]float32, 8*Pixels), make([]uint8, 8)
	indices := []int{7, 6, 5, 4, 3, 2, 1, 0}
	if n := testing.AllocsPerRun(10, func() { s.Fill(x, y, indices, 0.5, 0.5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFillPanicsOutOfRange(t *testing.T) {
	s := &Set{Images: make([]byte, 2*Pixels), Labels: make([]byte, 2)}
	for name, call := range map[string]func(){
		"index":   func() { s.Fill(make([]float32, Pixels), make([]uint8, 1), []int{2}, 0, 1) },
		"below":   func() { s.Fill(make([]float32, Pixels), make([]uint8, 1), []int{-1}, 0, 1) },
		"short x": func() { s.Fill(make([]float32, Pixels-1), make([]uint8, 1), []int{0}, 0, 1) },
		"short y": func() { s.Fill(make([]float32, 2*Pixels), make([]uint8, 1), []int{0, 1}, 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestReadFindsEachUsualName(t *testing.T) {
	for i := range names("train-images", 3) {
		dir := t.TempDir()
		for stem, b := range map[string][]byte{"train-images": images(2), "t10k-images": images(1)} {
			folder(t, dir, map[string][]byte{names(stem, 3)[i]: b})
		}
		for stem, b := range map[string][]byte{"train-labels": labels(2), "t10k-labels": labels(1)} {
			folder(t, dir, map[string][]byte{names(stem, 1)[i]: pack(b)})
		}
		d, err := read(context.Background(), dir)
		if err != nil {
			t.Errorf("%v: %v", listing(t, dir), err)
			continue
		}
		if d.Dir != dir || d.Train.Len() != 2 || d.Test.Len() != 1 || len(d.Train.Images) != 2*Pixels {
			t.Errorf("%v: %d and %d images from %s", listing(t, dir), d.Train.Len(), d.Test.Len(), d.Dir)
		}
	}
}

// Each case spoils one file of a good folder.
func TestReadRefuses(t *testing.T) {
	wrong := encode([]int{12}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0})
	for _, c := range []struct {
		file string
		b    []byte // nil: leave it out
		want string
	}{
		{"train-images-idx3-ubyte.gz", nil, "no train-images-idx3-ubyte.gz in this folder"},
		{"train-labels-idx1-ubyte.gz", nil, "no train-labels-idx1-ubyte.gz"},
		{"t10k-images-idx3-ubyte.gz", nil, "no t10k-images-idx3-ubyte.gz"},
		{"t10k-labels-idx1-ubyte.gz", nil, "no t10k-labels-idx1-ubyte.gz"},
		{"train-images-idx3-ubyte.gz", images(12)[:999], "truncated or corrupt"},
		{"train-images-idx3-ubyte.gz", pack(images(12))[:99], "truncated at byte"},
		{"train-images-idx3-ubyte.gz", labels(12), "shape is [12], want [N 28 28]"},
		{"train-images-idx3-ubyte.gz", encode([]int{12, 27, 28}, make([]byte, 12*27*28)), "shape is [12 27 28], want [N 28 28]"},
		{"train-images-idx3-ubyte.gz", encode([]int{0, 28, 28}, nil), "with some images"},
		{"train-labels-idx1-ubyte.gz", labels(11), "shape is [11], want [12]"},
		{"train-labels-idx1-ubyte.gz", encode([]int{12, 1}, make([]byte, 12)), "shape is [12 1], want [12]"},
		{"train-labels-idx1-ubyte.gz", wrong, "label 10 is 10, want below 10"},
		{"t10k-labels-idx1-ubyte.gz", labels(12), "shape is [12], want [3]"},
	} {
		files := tiny()
		if delete(files, c.file); c.b != nil {
			files[c.file] = c.b
		}
		dir := t.TempDir()
		folder(t, dir, files)
		path := dir
		if c.b != nil {
			path = filepath.Join(dir, c.file)
		}
		checkDataError(t, c.file, second(read(context.Background(), dir)), path, c.want)
	}
}

func TestReadOfNoFolder(t *testing.T) {
	dir := t.TempDir()
	folder(t, dir, map[string][]byte{"file": nil})
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file or directory",
		filepath.Join(dir, "file"): "not a folder",
	} {
		checkDataError(t, path, second(read(context.Background(), path)), path, want)
	}
}

func TestNamesOfThePins(t *testing.T) {
	for i, want := range []string{
		names("train-images", 3)[0], names("train-labels", 1)[0], names("t10k-images", 3)[0], names("t10k-labels", 1)[0],
	} {
		if p := pins[i]; p.name != want || len(p.sum) != 64 || strings.ToLower(p.sum) != p.sum || p.size < 1 {
			t.Errorf("pin %d is %+v, want %s", i, p, want)
		}
	}
}
