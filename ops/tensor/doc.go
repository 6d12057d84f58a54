// Package tensor holds what collectives move: elements of a known type in some
// memory, and the arithmetic that folds a message into them. It knows of no
// network and imports the standard library only.
//
// # Three nouns
//
// A [Memory] is bytes that can be read, written and folded into at an offset.
// [Host] is a slice of the process's own; a GPU's is another package's. What
// sits between, an executor or a test, needs no more of either than those three
// verbs, and asks a [Viewer] for its bytes when it would rather not copy.
//
// A [Tensor] is a Memory with an element type, an offset and a shape: a small
// value that shares its elements, as a slice does. [Of] makes one of a Go slice
// and [Data] gives the slice back; these two and the kernels are the only
// generic code, and below them a [DType] says at run time what the bytes are.
// [Tensor.Slice] cuts in flat order, whatever the shape, because that is how
// schedules cut: into lanes, chunks and segments that know no dimensions. It
// does not allocate.
//
// An [Op] is a reduction of two elements. [Memory] applies it through one table
// [type][op] of kernels, each func(dst, src []byte). Adding an element type or
// an op is a row of a table; adding a faster kernel is an assignment to it.
//
// # Bytes
//
// Elements travel as they lie in memory, little-endian, so that a message is
// folded where it was received: no copy, no decoding, at any address. (An
// address that is not aligned for its type costs a copy within the first-level
// cache, which adds about a quarter to the time of a sum.) The package does not
// compile for a big-endian machine; to swap bytes would cost every machine a
// branch for the sake of hosts that nobody trains on.
//
// # Arithmetic
//
// Integers wrap. Float32 is computed in float32, each operation rounded once.
// NaN wins in [Min] and [Max], as in torch.maximum and unlike in some hardware's
// instructions, where the position decides; -0 orders before +0. So every op
// gives the same bits when its operands change places, and replicas whose sums
// have the same tree agree bit for bit. Which NaN comes of two is the machine's
// choice and the one exception.
//
// # Errors
//
// A range beyond a tensor or a memory, a message that cuts an element in two, an
// unknown type or op: all are errors, for they may come from a peer. A
// [RangeError] says which bytes. Nothing is moved before the arguments are
// checked. Wrong shapes in [In] and [New] and wrong indices in Slice panic, as
// make and slicing do, for they come from the program.
//
// Back ends prove themselves with the suite in tensortest.
package tensor
