// Package cifar reads CIFAR-10: 60,000 colour images of 32×32 pixels in ten
// classes, in the binary form in which it is published.
//
//	d, err := cifar.Load("/data/cifar-10-batches-bin")
//	loader, err := data.NewLoader(d.Train, data.Config[cifar.Sample, nn.Batch]{ … })
//
// A Set is a data.Dataset of [Sample]. It holds the bytes as they are in the files,
// 3,072 an image, so what makes floats of a batch is the loader's Collate: with
// data.Augment, which crops and mirrors, and a data.Normalizer of [Mean] and [Std].
//
// The archive is cifar-10-binary.tar.gz from
// https://www.cs.toronto.edu/~kriz/cifar.html, unpacked: five files to train on and
// one to test. A file is records of 3,073 bytes: a label, then 1,024 bytes of red,
// of green and of blue, row by row. That is all that is checked, with the labels
// below ten: other data of that form does as well.
package cifar

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"peermesh/trainer/data"
)

const (
	Side    = 32              // of an image, in pixels
	Bytes   = 3 * Side * Side // of an image
	Classes = 10              // labels are 0 … 9

	record = 1 + Bytes

	// MaxImages bounds one file: a hundred times those of CIFAR-10.
	MaxImages = 1_000_000
)

// Shape is that of an image.
var Shape = data.Shape{Channels: 3, Height: Side, Width: Side}

// Mean and Std are those of the training set's channels, of values between 0 and 1.
var (
	Mean = []float32{0.4914, 0.4822, 0.4465}
	Std  = []float32{0.2470, 0.2435, 0.2616}
)

// Names are those of the classes.
var Names = [Classes]string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

// A Sample is an image and its class. The image is shared: it is not to be changed.
type Sample struct {
	Image []byte // Bytes of them: red, green, blue, each row by row
	Label uint8  // below Classes
}

// A Set is N labelled images, as the records of the files.
type Set struct{ records []byte }

// Len is the number of images.
func (s *Set) Len() int { return len(s.records) / record }

// At is image i. It does not fail.
func (s *Set) At(i int) (Sample, error) {
	p := s.records[i*record:][:record:record]
	return Sample{Image: p[1:], Label: p[0]}, nil
}

// Data is CIFAR-10.
type Data struct {
	Train *Set // 50,000 images
	Test  *Set // 10,000
}

// A DataError is a file or folder that is not what it should be.
type DataError struct {
	Path string
	Err  error
}

func (e *DataError) Error() string { return "cifar: " + e.Path + ": " + e.Err.Error() }

// Unwrap gives the reason, without the path.
func (e *DataError) Unwrap() error { return e.Err }

// Load reads a folder with the six files. It fails with a *DataError, which says
// where the files come from if they are not there.
func Load(dir string) (*Data, error) {
	var d Data
	var train []byte
	for i := 1; i <= 5; i++ {
		set, err := Read(filepath.Join(dir, fmt.Sprintf("data_batch_%d.bin", i)))
		if err != nil {
			return nil, err
		}
		train = append(slices.Grow(train, (6-i)*len(set.records)), set.records...) // room for those left
	}
	d.Train = &Set{train}
	var err error
	d.Test, err = Read(filepath.Join(dir, "test_batch.bin"))
	return &d, err
}

// Read reads one file.
func Read(path string) (*Set, error) {
	s, err := read(path)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // without the path, which comes below
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: unpack cifar-10-binary.tar.gz of https://www.cs.toronto.edu/~kriz/cifar.html, and give the folder with its six .bin files", err)
	}
	if err != nil {
		return nil, &DataError{path, err}
	}
	return s, nil
}

func read(path string) (_ *Set, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return Decode(f, info.Size())
}

// Decode reads images from r, which has size bytes.
func Decode(r io.Reader, size int64) (*Set, error) {
	if size <= 0 || size%record != 0 || size/record > MaxImages {
		return nil, fmt.Errorf("%d bytes: want records of %d, 1 to %d of them", size, record, MaxImages)
	}
	s := &Set{make([]byte, size)}
	if n, err := io.ReadFull(r, s.records); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("byte %d of %d: %w", n, size, err)
	}
	for i := 0; i < s.Len(); i++ {
		if label := s.records[i*record]; label >= Classes {
			return nil, fmt.Errorf("label %d is %d: want below %d", i, label, Classes)
		}
	}
	return s, nil
}
