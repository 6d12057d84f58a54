// Package kern multiplies small float32 matrices: the two inner loops that a
// neural network's layers spend their time in.
//
//   - [Engine.Mul] sets C = start + A·B tile by tile: a convolution forward and
//     its gradient by the input, a linear layer's gradients. [Engine.Panel] is
//     one row of tiles, for sums of products that are to stay in the nearest cache.
//   - [Engine.Dot] adds up the products of rows with rows: a linear layer
//     forward, a convolution's gradient by its weights, summed over samples.
//
// Each has an implementation in assembly for amd64 with AVX2 and FMA, at about
// 100 GFLOPS on one core of a 2024 server, and a portable twin (4 to 11) under
// the same method. The build tag purego leaves the assembly out.
//
// [Engine.Add] adds up such products. [Sum], of the biases' gradients and of pools, is the
// same Go for both.
//
// Neither reads or writes a float outside of the operands it is given: bounds
// are checked in Go, once a tile, before assembly sees a pointer.
package kern
