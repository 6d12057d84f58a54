package tensor

import (
	"fmt"
)

// An Op is a reduction: it folds two elements into one. Every Op is commutative,
// bit for bit save for which of two NaNs survives, so a result depends on the
// shape of its summation tree alone and not on who was left and who was right.
//
// Two of them do more than fold. Avg and PremulSum fold as Sum does; the step
// that makes them what they are is taken once on each rank, by After and Before.
//
// An Op is a small value that can be compared and used as a key. The zero Op is
// none, which is what an operation without arithmetic carries.
type Op struct {
	code   OpCode
	factor float64 // of PremulSum
	custom *custom // of Func
}

// The reductions, besides PremulSum and Func. Which of them an element type has
// is a table in the package's guide, and Check's answer.
var (
	Sum     = Op{code: opSum}     // integers wrap
	Product = Op{code: opProduct} // integers wrap
	Min     = Op{code: opMin}     // NaN wins; -0 is less than +0
	Max     = Op{code: opMax}     // NaN wins; +0 is greater than -0
	Avg     = Op{code: opAvg}     // the sum, divided by the number of ranks
	BitAnd  = Op{code: opBitAnd}
	BitOr   = Op{code: opBitOr}
	BitXor  = Op{code: opBitXor}
)

// PremulSum is the sum of every rank's elements times that rank's factor, which
// need not be the others'. Floats are multiplied as float64 if that is their
// type, else as float32. A factor of integers has to be one of the type's
// values, and the products wrap. NCCL has it under the same name.
func PremulSum(factor float64) Op { return Op{code: opPremulSum, factor: factor} }

// Func is a caller's own reduction of elements of type T. f must be commutative
// and associative, or near enough to it for the caller, and may be called from
// several goroutines. All ranks give it the same name, by which they know that
// they mean the same. It runs on the host: elements elsewhere are copied there
// and back.
func Func[T Element](name string, f func(a, b T) T) Op {
	c := &custom{name: name, dtype: dtypeOf[T]()}
	if f != nil {
		c.fold = func(dst, src []byte) { call(dst, src, f) }
	}
	return Op{code: opFunc, custom: c}
}

// custom is what Func was given.
type custom struct {
	name  string
	dtype DType
	fold  kernel // nil if there was no function
}

// An OpCode is the kind of an Op, as it travels in messages. The values are
// never renumbered.
type OpCode uint8

const (
	opSum       OpCode = 1
	opProduct   OpCode = 2
	opMin       OpCode = 3
	opMax       OpCode = 4
	opAvg       OpCode = 5
	opBitAnd    OpCode = 6
	opBitOr     OpCode = 7
	opBitXor    OpCode = 8
	opPremulSum OpCode = 9
	opFunc      OpCode = 10
)

// opRows has a row an op: its name, and the elements it is for if not all. Its
// kernels are the entries of the same index in the columns of kernel.go.
var opRows = [...]struct{ name, domain string }{
	opSum:       {name: "sum"},
	opProduct:   {name: "product"},
	opMin:       {name: "min"},
	opMax:       {name: "max"},
	opAvg:       {"avg", "numbers"},
	opBitAnd:    {"band", "integers and bool"},
	opBitOr:     {"bor", "integers and bool"},
	opBitXor:    {"bxor", "integers and bool"},
	opPremulSum: {"premul_sum", "numbers"},
	opFunc:      {name: "func"},
}

// Valid reports whether c is the code of an Op, which a byte from the network
// need not be.
func (c OpCode) Valid() bool {
	return int(c) < len(opRows) && opRows[c].name != ""
}

// String is the name in lower case, as in "sum".
func (c OpCode) String() string {
	if !c.Valid() {
		return fmt.Sprintf("op(%d)", uint8(c))
	}
	return opRows[c].name
}

// Code is the kind of o, 0 for the zero Op.
func (o Op) Code() OpCode { return o.code }

// Factor is what o multiplies by, if it is a PremulSum.
func (o Op) Factor() (factor float64, ok bool) { return o.factor, o.code == opPremulSum }

// Valid reports whether o is a reduction, as all but the zero Op are.
func (o Op) Valid() bool { return o.code.Valid() }

// String is the name in lower case, as in "sum" or "func(hypot)".
func (o Op) String() string {
	if o.custom != nil {
		return fmt.Sprintf("%v(%s)", o.code, o.custom.name)
	}
	return o.code.String()
}

// Digest is the same on ranks that mean the same reduction: it is made of the
// code and of a Func's name and type. PremulSum's factor is each rank's own and
// does not count.
func (o Op) Digest() uint32 {
	h := fnv1a(2166136261, byte(o.code))
	if o.custom != nil {
		h = fnv1a(h, byte(o.custom.dtype))
		for i := range len(o.custom.name) {
			h = fnv1a(h, o.custom.name[i])
		}
	}
	return h
}

// fnv1a is a step of package hash/fnv's New32a, which allocates.
func fnv1a(h uint32, b byte) uint32 { return (h ^ uint32(b)) * 16777619 }

// Check says why o is no reduction of elements of type t, or nil if it is one:
// floats have no bits to combine, bool has no average, a Func is for one type,
// and a PremulSum of integers needs a factor that is one.
func (o Op) Check(t DType) error {
	switch {
	case !t.Valid():
		return fmt.Errorf("tensor: reduction of the unknown %v", t)
	case !o.Valid():
		return fmt.Errorf("tensor: %v is no reduction", o)
	case o.custom != nil && o.custom.dtype != t:
		return fmt.Errorf("tensor: %v of %v: it is for %v", o, t, o.custom.dtype)
	case o.kernel(t) == nil && o.custom != nil:
		return fmt.Errorf("tensor: %v has no function", o)
	case o.kernel(t) == nil:
		return fmt.Errorf("tensor: %v of %v: it is for %s", o, t, opRows[o.code].domain)
	case o.code == opPremulSum && !dtypes[t].holds(o.factor):
		return fmt.Errorf("tensor: premul_sum of %v: the factor %v is not one of its values", t, o.factor)
	}
	return nil
}

// kernel folds elements of type t, both of which are valid; nil if o cannot.
func (o Op) kernel(t DType) kernel {
	if o.custom != nil {
		return o.custom.fold
	}
	return dtypes[t].fold[o.code]
}
