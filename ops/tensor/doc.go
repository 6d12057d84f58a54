// Package tensor holds what collectives move: elements of a known type in some
// memory, and the arithmetic that folds a message into them. It knows of no
// network, and of the machine only which vector instructions it has.
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
// an op is a row of a table, which names the portable kernel and, where there is
// one, the processor's: the package internal/simd has those, for amd64 with AVX2.
// The build tag purego leaves them out. They give the same bits and are 3 to 90
// times as fast. [Residual], for error feedback, is no op and has a kernel likewise.
//
// # Which op of which type
//
// Floats are float16 ([F16]), bfloat16 ([BF16]), float32 and float64; integers
// have 8 to 64 bits, signed or not. [Op.Check] says the same of one pair, and
// why not.
//
//	op         floats    integers   bool
//	Sum        rounds    wraps      or
//	Product    rounds    wraps      and
//	Min        NaN-wins  ✓          and
//	Max        NaN-wins  ✓          or
//	Avg        rounds    truncates  –
//	BitAnd     –         ✓          and
//	BitOr      –         ✓          or
//	BitXor     –         ✓          xor
//	PremulSum  rounds    wraps      –
//	Func       ✓         ✓          ✓
//
// [Avg] and [PremulSum] fold as Sum does, and take a step besides: [Op.Before]
// multiplies a rank's elements before the fold, [Op.After] divides the result.
// Whoever folds by ReduceAt alone, as a schedule does, takes these steps
// himself; package ops does. The sum of an average is one of the element type,
// so it may overflow where the average would not. Integers take as a factor what
// is a value of their type, for that is what NCCL takes; a [Func] is for one type.
//
// # Bytes
//
// Elements travel as they lie in memory, little-endian, so that a message is
// folded where it was received: no copy, no decoding, at any address. (To the
// portable kernels, an address that is not aligned for its type costs a copy
// within the first-level cache.) The package does not compile for a big-endian
// machine; to swap bytes would cost every machine a branch for the sake of hosts
// that nobody trains on.
//
// A bool is a byte, 0 or 1, and any other byte that arrives counts as 1. Go
// leaves undefined what a bool of another value is, so none is ever made:
// ReduceAt and [Tensor.WriteAt] store 0 or 1, and Data refuses to lend bytes that
// are neither, which only writes past the tensor, to its Memory, can leave.
//
// # Arithmetic
//
// Integers wrap. Floats are computed in their own type, each operation rounded
// once. Float16 and bfloat16 sums round once an addition: two elements are
// added as float32 and the sum is rounded to the nearest, ties to even, so an
// average over many ranks loses bits at each of them. Sum float32 where that
// matters.
//
// NaN wins in [Min] and [Max], as in torch.maximum and unlike in some hardware's
// instructions, where the position decides; -0 orders before +0. So every op
// gives the same bits when its operands change places, and replicas whose sums
// have the same tree agree bit for bit. Which NaN comes of two is the machine's
// choice and the one exception. Arithmetic makes a NaN quiet, and so does every
// op of the half types; what else its bits are is the machine's choice too.
//
// # Errors
//
// A range beyond a tensor or a memory, a message that cuts an element in two, an
// unknown type, an op that a type does not have: all are errors, for they may
// come from a peer. A [RangeError] says which bytes. Nothing is moved before the arguments are
// checked. Wrong shapes in [In] and [New] and wrong indices in Slice panic, as
// make and slicing do, for they come from the program.
//
// Back ends prove themselves with the suite in tensortest.
package tensor
