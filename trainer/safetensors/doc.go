// Package safetensors reads and writes files of named tensors in the format of
// that name, in which models are passed between PyTorch, JAX, and now Go.
//
//	err := safetensors.Save("model.safetensors", model.Params(), safetensors.Options{
//		Metadata: map[string]string{"format": "pt"},
//	})
//
//	f, err := safetensors.Open("model.safetensors")
//	defer f.Close()
//	err = f.Load(model.Params(), safetensors.LoadOptions{})
//
// # The format
//
// A file is a header and bytes:
//
//	8  length of the header, little-endian, at most MaxHeader
//	   the header: a JSON object, from each tensor's name to
//	   {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
//	   the elements, little-endian, the last dimension the fastest
//
// The offsets count from the header's end. Tensors lie without holes and without
// overlap, so a file has no place for anything that is not a tensor; the key
// __metadata__ maps strings to strings. Nothing in a file is code: that is why it
// took the place of Python's pickles, and why one from a stranger may be opened.
// [Open] checks all of this before it believes any of it, and a file that it
// refuses is an error that wraps [ErrFormat]. Source: the section "Format" of README.md at
// https://github.com/huggingface/safetensors. The format has no version, in a file or
// elsewhere; where that section leaves a choice, the checks here are those of the library
// beside it (safetensors/src/tensor.rs), and the code says which.
//
// Element types are those of package tensor: F64, F32, F16, BF16, I64, I32, I16,
// I8, U64, U32, U16, U8 and BOOL. A file with another, such as an 8-bit float, is
// refused.
//
// # Reading
//
// A [File] is its header. Elements are read when they are asked for, of the tensors
// that are asked for, from any io.ReaderAt, by any number of goroutines at a time.
//
// [File.Load] fills the parameters of a model by their names. As load_state_dict
// does by default, it wants the same names in the file and in the model, and the
// same shapes, or else changes nothing and returns a *[LoadError] that lists all
// that differs. Element types may differ: a model of float32 loads a file of
// bfloat16. LoadOptions.Rename bridges two naming schemes, LoadOptions.Partial
// takes what is there.
//
// # Writing
//
// [Save] replaces a file as a whole or not at all, whatever crashes. The bytes are a
// function of the tensors and the metadata: the largest element types come first,
// then names in order, as the format's own library writes them, so that every
// tensor is aligned for its type and equal models are equal files.
//
// # Conversion
//
// Floats become other floats by rounding to the nearest, ties to even, and to
// float16 and bfloat16 by way of float32, as PyTorch does; beyond the range lies
// infinity. An integer or bool becomes the nearest float. An integer becomes
// another integer type only where its value fits, else it is an error. A float
// never becomes an integer.
package safetensors
