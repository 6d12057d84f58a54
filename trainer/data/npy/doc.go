// Package npy reads and writes NumPy's files: NPY, which is one array, and NPZ,
// which is a zip archive of them by name.
//
//	a, err := npy.Open("features.npy")
//	defer a.Close()
//	fmt.Println(a.DType(), a.Shape())     // float32 [60000 784]
//	rows, err := npy.Rows[float32](a)     // a data.Dataset, read row by row
//	all, err := a.Read()                  // or the whole array as a tensor
//
//	z, err := npy.OpenZip("set.npz")
//	x, err := z.Array("x")
//
//	err = npy.Save("weights.npy", weights)
//	err = npy.SaveZip("run.npz", []npy.Named{{"loss", losses}, {"weights", weights}})
//
// # What is read
//
// Versions 1.0, 2.0 and 3.0 of the format; elements of the types f2, f4, f8, i1 to
// i8, u1 to u8 and bool, in either byte order; arrays in C's order of dimensions and
// in Fortran's. What is read is always little-endian and in C's order, which is what
// tensors are. Complex numbers, strings, records and Python objects are refused: the
// last are programs, and nobody should run those that come in a file. Source: NumPy's
// documentation of numpy.lib.format.
//
// Arrays need not fit memory: an [Array] is a header and a place in a file, and reads
// what it is asked for. In an archive this is so for members that are stored as they
// are, as numpy.savez does; a compressed one is unpacked as a whole.
//
// A length that a file claims is compared with the file before it is believed. What
// is malformed is an error that wraps [ErrFormat].
//
// # What is written
//
// Version 1.0, in C's order, little-endian, aligned to 64 bytes, as NumPy writes
// them, byte for byte; archives without compression. NumPy has no bfloat16.
package npy
